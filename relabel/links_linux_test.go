// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fastlabel/fastlabel/test/treetest"
)

// twoNames is a volume that has one of its files in common with its neighbour,
// and two names of its own for another.
const twoNames = "default label=" + oldLabel + `
file outside
dir tree
hardlink tree/in outside
file tree/a
hardlink tree/b tree/a
dir tree/d
file tree/d/plain
link tree/l outside
`

// TestHardLinks: labelled, skipped and named, or a failure, by every way.
func TestHardLinks(t *testing.T) {
	linked := []string{"a", "b", "in"}
	for engine, m := range engines() {
		for _, mode := range []HardLinks{LinksLabel, LinksSkip, LinksError} {
			top := grow(t, on(t, "ext4"), twoNames)
			root := filepath.Join(top, "tree")
			var skips, fails []string
			o := Options{
				HardLinks: mode,
				Trace: &Trace{Skip: func(p, _ string) { skips = append(skips, filepath.Base(p)) }, Failure: func(err error) {
					if !errors.Is(err, ErrHardLinks) {
						t.Error(err)
					}
					fails = append(fails, filepath.Base(pathOf(err)))
				}},
			}
			for _, dry := range []bool{true, false} {
				skips, fails = nil, nil
				r, err := tree(t.Context(), root, newLabel, o, inner{can: &m, dry: dry})
				adds(t, r)
				if mode != LinksLabel && !strings.HasSuffix(strings.TrimSuffix(r.Way, "/slow"), "/fd") {
					t.Errorf("%s, %d: what is counted is not pinned: %s", engine, mode, r.Way)
				}
				slices.Sort(skips)
				slices.Sort(fails)
				var wrong, skipped, failed []string // that should be
				switch mode {
				case LinksSkip:
					wrong, skipped = linked, linked
				case LinksError:
					wrong, failed = []string{".", "a", "b", "in"}, linked
				}
				ok := (err == nil) == (failed == nil) && r.Complete == (err == nil && !dry) && slices.Equal(skips, skipped) && slices.Equal(fails, failed)
				has := treetest.Read(t, root)
				for p, l := range has {
					ok = ok && (l != newLabel) == (dry || slices.Contains(wrong, p))
				}
				if out := treetest.Read(t, top)["outside"]; !ok || (out == newLabel) != (mode == LinksLabel && !dry) {
					t.Errorf("%s, %d, dry %t: %+v, %v; skipped %q, failed %q, has %q; the neighbour's file has %s", engine, mode, dry, r, err, skips, fails, has, out)
				}
			}
			// What has the label is right, whatever its names.
			treetest.Label(t, root, newLabel)
			unclaim(t, root)
			r, err := tree(t.Context(), root, newLabel, o, as(m))
			if err != nil || !r.Complete || r.Right != r.Seen {
				t.Errorf("%s, %d, all right: %+v, %v", engine, mode, r, err)
			}
		}
	}
}

// TestApplyLinks: a file for whose names rules have different labels has one of those after
// each run, whatever the number of workers. That it is not right by its other name is what
// a check finds every time; LinksError names it, and with LinksSkip it is skipped.
func TestApplyLinks(t *testing.T) {
	const files = 30
	text := "default label=" + oldLabel + "\ndir .\ndir a\ndir b\n"
	for i := range files {
		text += fmt.Sprintf("file a/f%d\nhardlink b/f%d a/f%d\nfile a/g%d\nhardlink a/h%d a/g%d\n", i, i, i, i, i, i)
	}
	root := grow(t, on(t, "ext4"), text)
	rules := Rules{Contexts: contextsFor(t, root, "@(/.*)? "+usrLabel+"\n@/(b/f|a/h).* "+etcLabel+"\n")}
	for turn := range 4 {
		o := Options{Workers: 1 + turn*2}
		r, err := Apply(t.Context(), root, rules, &o)
		adds(t, r)
		if err != nil || r.Written < 2*files || r.Seen != 3+4*files {
			t.Errorf("run %d: %+v, %v", turn, r, err)
		}
		for path, has := range treetest.Read(t, root) {
			if has != usrLabel && (has != etcLabel || !strings.Contains(path, "/")) {
				t.Errorf("run %d: %s has %s", turn, path, has)
			}
		}
		named := 0
		strict := Options{HardLinks: LinksError, Trace: &Trace{Failure: func(error) { named++ }}}
		if r, err := VerifyApply(t.Context(), root, rules, &strict); !errors.Is(err, ErrHardLinks) || r.Failed != 2*files || named != 2*files {
			t.Errorf("run %d: %+v, %v; %d named", turn, r, err, named)
		}
		if r, err := VerifyApply(t.Context(), root, rules, &o); err != nil || r.Written != 2*files || r.Complete {
			t.Errorf("check %d: %+v, %v", turn, r, err)
		}
	}
	if r, err := Apply(t.Context(), root, rules, &Options{HardLinks: LinksSkip}); err != nil || r.Written != 0 || r.Skipped != 2*files {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestLinkedRoot: a root that is such a file is not called done.
func TestLinkedRoot(t *testing.T) {
	top := grow(t, on(t, "tmpfs"), twoNames)
	r, err := Tree(t.Context(), filepath.Join(top, "tree", "a"), newLabel, &Options{HardLinks: LinksSkip})
	if err != nil || r.Complete || r.Skipped != 1 {
		t.Errorf("%+v, %v", r, err)
	}
}
