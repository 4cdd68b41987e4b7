// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"context"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/fastlabel/fastlabel/test/treetest"
)

// rows is a tree with rows that are full and rows that are not, and with
// directories of several depths.
const rows = "dir a/b/c\nfile a/f%03d x100\ndir d%03d x50\nfile d%03d/f x50\nlink l a\n"

func (s State) counts() [6]int64 {
	return [6]int64{s.Seen, s.Written, s.Right, s.Vanished, s.Skipped, s.Failed}
}

// TestState: a caller is told counts that add up and never shrink, and in
// the end those of the Report. Throttle is asked for each entry beneath the root once, a few
// at a time.
func TestState(t *testing.T) {
	treetest.Need(t, "root")
	root := filepath.Join(treetest.Fresh(t, "tmpfs"), "tree")
	treetest.Build(t, root, treetest.Text(t, rows))
	dirs, entries := treetest.Count(t, root).Dirs-1, treetest.Count(t, root).All-1
	check := func(t *testing.T, o Options, in inner) {
		settle(t, root)
		var asked, seen atomic.Int64
		o.Progress = new(Progress)
		state := func() State {
			s, _ := o.Progress.State()
			return s
		}
		o.Throttle = func(_ context.Context, n int) error { // asks while rows are at hand
			s := state()
			if before := seen.Swap(s.Seen); o.Workers == 1 && s.Seen < before {
				t.Errorf("%d seen after %d", s.Seen, before)
			}
			if asked.Add(int64(n)); n < 1 || n > 8 {
				t.Errorf("asked for %d entries", n)
			}
			if sum := s.Written + s.Right + s.Vanished + s.Skipped + s.Failed; sum != s.Seen {
				t.Errorf("%d seen, and the others make %d", s.Seen, sum)
			}
			if s.Found < s.Entered {
				t.Errorf("%d directories entered, and %d found", s.Entered, s.Found)
			}
			if s.Path != root && !strings.HasPrefix(s.Path, root+"/") {
				t.Errorf("works on %q", s.Path)
			}
			return nil
		}
		rep, err := tree(t.Context(), root, newLabel, o, in)
		s := state()
		if want := [6]int64{rep.Seen, rep.Written, rep.Right, rep.Vanished, rep.Skipped, rep.Failed}; err != nil || s.counts() != want {
			t.Errorf("told %v, and reported %v, %v", s.counts(), want, err)
		}
		if s.Found != dirs || s.Entered != dirs || s.Path != "" || asked.Load() != entries {
			t.Errorf("%d directories found and %d entered of %d; at %q; asked for %d entries of %d", s.Found, s.Entered, dirs, s.Path, asked.Load(), entries)
		}
	}
	for name, m := range engines() {
		t.Run(name, func(t *testing.T) {
			check(t, Options{Workers: 1}, as(m))
			check(t, Options{Workers: 4}, as(m))
			check(t, Options{Workers: 4}, inner{can: &m, dry: true})
			check(t, Options{Workers: 4, Trace: &Trace{Change: func(string, string, string) {}}}, as(m))
		})
	}
}
