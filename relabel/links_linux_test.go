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
				wrong := []string{}
				for p, l := range treetest.Read(t, root) {
					if l != newLabel && !dry {
						wrong = append(wrong, p)
					}
				}
				slices.Sort(wrong)
				ok := false
				switch mode {
				case LinksLabel:
					ok = err == nil && r.Complete != dry && len(wrong)+len(skips)+len(fails) == 0
				case LinksSkip:
					ok = err == nil && r.Complete != dry && r.Skipped == 3 && slices.Equal(skips, linked) && (dry || slices.Equal(wrong, linked))
				case LinksError:
					ok = errors.Is(err, ErrHardLinks) && !r.Complete && r.Failed == 3 && slices.Equal(fails, linked) && (dry || slices.Equal(wrong, []string{".", "a", "b", "in"}))
				}
				if out := treetest.Read(t, top)["outside"]; (out == newLabel) != (mode == LinksLabel && !dry) {
					t.Errorf("%s, %d, dry %t: the neighbour's file has %s", engine, mode, dry, out)
				}
				if !ok {
					t.Errorf("%s, %d, dry %t: %+v, %v; skipped %q, failed %q, wrong %q", engine, mode, dry, r, err, skips, fails, wrong)
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
	treetest.Need(t, "root", "ext4")
	const files = 30
	tree := "default label=" + oldLabel + "\ndir .\ndir a\ndir b\n"
	for i := range files {
		tree += fmt.Sprintf("file a/f%d\nhardlink b/f%d a/f%d\nfile a/g%d\nhardlink a/h%d a/g%d\n", i, i, i, i, i, i)
	}
	for name, o := range everyWay(t) {
		if o.HardLinks != LinksLabel {
			continue
		}
		root := grow(t, on(t, "ext4"), tree)
		rules := Rules{Contexts: contextsFor(t, root, "@(/.*)? "+usrLabel+"\n@/(b/f|a/h).* "+etcLabel+"\n")}
		for turn := range 4 {
			o.Workers = 1 + turn*2
			r, err := Apply(t.Context(), root, rules, &o)
			adds(t, r)
			if err != nil || r.Written < 2*files || r.Seen != 3+4*files {
				t.Errorf("%s, run %d: %+v, %v", name, turn, r, err)
			}
			for path, has := range treetest.Read(t, root) {
				if has != usrLabel && (has != etcLabel || !strings.Contains(path, "/")) {
					t.Errorf("%s, run %d: %s has %s", name, turn, path, has)
				}
			}
			var fails []string
			strict := Options{HardLinks: LinksError, Trace: &Trace{Failure: func(err error) { fails = append(fails, pathOf(err)) }}}
			if r, err := VerifyApply(t.Context(), root, rules, &strict); !errors.Is(err, ErrHardLinks) || r.Failed != 2*files || len(fails) != 2*files {
				t.Errorf("%s, run %d: %+v, %v; failed %q", name, turn, r, err, fails)
			}
			if r, err := VerifyApply(t.Context(), root, rules, &o); err != nil || r.Written != 2*files || r.Complete {
				t.Errorf("%s, check %d: %+v, %v", name, turn, r, err)
			}
		}
		if r, err := Apply(t.Context(), root, rules, &Options{HardLinks: LinksSkip}); err != nil || r.Written != 0 || r.Skipped != 2*files {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
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
