// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

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

// TestHardLinks: labelled, left alone and named, or a failure, by every way.
func TestHardLinks(t *testing.T) {
	linked := []string{"a", "b", "in"}
	for engine, m := range engines() {
		for _, mode := range []HardLinks{LinksLabel, LinksSkip, LinksError} {
			top := grow(t, on(t, "ext4"), twoNames)
			root := filepath.Join(top, "tree")
			var skips, fails []string
			o := Options{
				HardLinks: mode,
				OnSkip:    func(p, _ string) { skips = append(skips, filepath.Base(p)) },
				OnFailure: func(err error) {
					if !errors.Is(err, ErrHardLinks) {
						t.Error(err)
					}
					fails = append(fails, filepath.Base(pathOf(err)))
				},
			}
			for _, dry := range []bool{true, false} {
				skips, fails, o.DryRun = nil, nil, dry
				r, err := tree(t.Context(), root, newLabel, o, as(m))
				adds(t, r)
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
					t.Errorf("%s, %d, dry %t: the neighbour's file bears %s", engine, mode, dry, out)
				}
				if !ok {
					t.Errorf("%s, %d, dry %t: %+v, %v; skipped %q, failed %q, wrong %q", engine, mode, dry, r, err, skips, fails, wrong)
				}
			}
			// What bears the label is right, whatever its names.
			treetest.Label(t, root, newLabel)
			r, err := tree(t.Context(), root, newLabel, o, as(m))
			if err != nil || !r.Complete || r.Right != r.Seen {
				t.Errorf("%s, %d, all right: %+v, %v", engine, mode, r, err)
			}
		}
	}
}

// TestLinkedRoot: a root that is such a file is not called done.
func TestLinkedRoot(t *testing.T) {
	top := grow(t, on(t, "tmpfs"), twoNames)
	r, err := Tree(t.Context(), filepath.Join(top, "tree", "a"), newLabel, Options{HardLinks: LinksSkip})
	if err != nil || r.Complete || r.Skipped != 1 {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestCopyUp: overlayfs copies what it labels; it is said before, and counted.
func TestCopyUp(t *testing.T) {
	treetest.Need(t, "root", "overlay")
	for _, c := range []struct {
		options string
		bytes   int64
		note    bool
	}{
		{"", 5000, true}, // d/low and low; up is in the upper layer already
		{",metacopy=on", 0, false},
	} {
		top := grow(t, on(t, "tmpfs"), "default label="+oldLabel+`
dir lower
file lower/low
dir lower/d
file lower/d/low
link lower/l low
file lower/up
dir upper
file upper/up
dir work
dir merged
`)
		sizes := map[string]int64{"lower/low": 2000, "lower/d/low": 3000, "lower/up": 500, "upper/up": 500}
		for name, size := range maps.All(sizes) {
			if err := unix.Truncate(filepath.Join(top, name), size); err != nil {
				t.Fatal(err)
			}
		}
		at := filepath.Join(top, "merged")
		options := "lowerdir=" + top + "/lower,upperdir=" + top + "/upper,workdir=" + top + "/work" + c.options
		if err := unix.Mount("overlay", at, "overlay", 0, options); err != nil {
			t.Fatal(err)
		}
		for _, part := range []struct {
			root  string
			bytes int64
		}{{at, c.bytes}, {filepath.Join(at, "d"), min(c.bytes, 3000)}, {filepath.Join(at, "low"), min(c.bytes, 2000)}, {filepath.Join(at, "up"), 0}} {
			r, err := Tree(t.Context(), part.root, newLabel, Options{DryRun: true})
			if err != nil || r.CopyUp != part.bytes || len(r.Notes) > 0 {
				t.Errorf("%q, %s: %+v, %v; want %d bytes", c.options, part.root, r, err, part.bytes)
			}
		}
		var notes []string
		var before bool
		r, err := Tree(t.Context(), at, newLabel, Options{OnNote: func(s string) {
			notes = append(notes, s)
			before = len(bearing(t, at, newLabel)) == 0
		}})
		if err != nil || !r.Complete || r.CopyUp != 0 || !slices.Equal(notes, r.Notes) || (len(notes) == 1 && before) != c.note {
			t.Errorf("%q: %+v, %v; told %q, before the first change: %t", c.options, r, err, notes, before)
		}
		if r, err := Tree(t.Context(), at, newLabel, Options{DryRun: true}); err != nil || r.CopyUp != 0 || r.Written != 0 {
			t.Errorf("%q, all right: %+v, %v", c.options, r, err)
		}
		if err := unix.Unmount(at, 0); err != nil {
			t.Error(err)
		}
	}
}
