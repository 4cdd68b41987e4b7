// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fastlabel/fastlabel/test/treetest"
)

// growing is a tree whose root is read to its end before the walk goes deeper,
// so that what is made in the root from then on is found by the second look at
// it or not at all.
const growing = "default label=" + oldLabel + "\ndir .\ndir d\ndir d/e\nfile d/e/f%03d x400\n"

// TestCreatedMeanwhile makes files, links and whole directories in the root
// while what is deep in the tree is labelled.
func TestCreatedMeanwhile(t *testing.T) {
	runs := sized(20, 6)
	for engine, m := range engines() {
		for _, age := range []time.Duration{0, time.Hour} {
			missed, made := 0, 0
			for i := range runs {
				root := grow(t, on(t, "tmpfs"), growing)
				aged(t, root, age)
				n := 0
				r, err := tree(t.Context(), root, newLabel, Options{Workers: 1 + i%3, Trace: &Trace{Change: func(path, _, _ string) {
					if n++; strings.HasPrefix(filepath.Base(path), "f") && n > 10 && n%40 == 0 {
						made += create(t, root, n)
					}
				}}}, as(m))
				adds(t, r)
				if err != nil || !r.Complete {
					t.Errorf("%s: %+v, %v", engine, r, err)
				}
				for _, l := range treetest.Read(t, root) {
					if l != newLabel {
						missed++
					}
				}
			}
			if missed > 0 || made < 10*runs {
				t.Errorf("%s, the root %v old: missed %d of %d", engine, age, missed, made)
			}
		}
	}
}

// aged sets the root's times back: it then looks unchanged for long.
func aged(t *testing.T, root string, age time.Duration) {
	t.Helper()
	if err := os.Chtimes(root, time.Time{}, time.Now().Add(-age)); err != nil {
		t.Error(err)
	}
}

// create makes entries in the root, as many as it says.
func create(t *testing.T, root string, n int) int {
	dir := filepath.Join(root, fmt.Sprintf("dir%d", n))
	for _, err := range []error{
		os.WriteFile(filepath.Join(root, fmt.Sprintf("file%d", n)), nil, 0o600),
		os.Symlink("nowhere", filepath.Join(root, fmt.Sprintf("link%d", n))),
		os.MkdirAll(filepath.Join(dir, "deep"), 0o700),
		os.WriteFile(filepath.Join(dir, "file"), nil, 0o600),
		os.WriteFile(filepath.Join(dir, "deep", "file"), nil, 0o600),
	} {
		if err != nil {
			t.Error(err)
		}
	}
	return 6
}

// TestCreatedUnseen is what the second look is for: the same without it, where
// nothing was there to tell of a change in the root.
func TestCreatedUnseen(t *testing.T) {
	root := grow(t, on(t, "tmpfs"), growing)
	made := 0
	walkAlone(t, root, newLabel, Options{Workers: 1, Trace: &Trace{Change: func(path, _, _ string) {
		if strings.HasSuffix(path, "f200") {
			made = create(t, root, 1)
		}
	}}})
	missed := 0
	for p, l := range treetest.Read(t, root) {
		if p != "." && l != newLabel {
			missed++
		}
	}
	if made == 0 || missed != made {
		t.Errorf("the walk alone missed %d of %d: the other tests prove nothing", missed, made)
	}
}

// TestCreatedAndBackdated: tar and rsync set a directory's modification time
// back after they have created entries in it.
func TestCreatedAndBackdated(t *testing.T) {
	root := grow(t, on(t, "tmpfs"), growing)
	when := time.Now().Add(-time.Hour)
	if err := os.Chtimes(root, when, when); err != nil {
		t.Fatal(err)
	}
	made := 0
	r, err := Tree(t.Context(), root, newLabel, &Options{Workers: 1, Trace: &Trace{Change: func(path, _, _ string) {
		if strings.HasSuffix(path, "f200") {
			made = create(t, root, 1)
			if err := os.Chtimes(root, when, when); err != nil {
				t.Error(err)
			}
		}
	}}})
	adds(t, r)
	if n, all := len(bearing(t, root, newLabel)), len(treetest.Read(t, root)); err != nil || made == 0 || n != all {
		t.Errorf("%d of %d are labelled: %+v, %v", n, all, r, err)
	}
}

// TestCreatedAtCommit: what is created in the root between the commit's last look at it and
// the root's label has the label too, also if the root's modification time is set back.
func TestCreatedAtCommit(t *testing.T) {
	treetest.Need(t, "root", "seccomp")
	for _, back := range []bool{false, true} {
		root := grow(t, on(t, "tmpfs"), "default label="+oldLabel+"\ndir .\nfile f%d x20\n")
		when := time.Now().Add(-time.Hour)
		if err := os.Chtimes(root, when, when); err != nil {
			t.Fatal(err)
		}
		late := filepath.Join(root, "late")
		cmd := exec.Command(treetest.Command(t), "-q", "--label", newLabel, root)
		end := treetest.Supervise(t, cmd, []int{unix.SYS_FSETXATTR}, func(c treetest.Notice) treetest.Answer {
			if c.Same == 3 { // after claim and seal
				if n := len(bearing(t, root, newLabel)); n != 20 {
					t.Errorf("%d entries have the label before the root has it", n)
				}
				if err := os.WriteFile(late, nil, 0o600); err != nil {
					t.Error(err)
				}
				treetest.Set(t, root, "late", oldLabel)
				if back {
					if err := os.Chtimes(root, when, when); err != nil {
						t.Error(err)
					}
				}
			}
			return treetest.Answer{}
		})
		if end.Code != 0 || labelOf(t, late) != newLabel || labelOf(t, root) != newLabel {
			t.Errorf("set back %t: %+v, and it has %s", back, end, labelOf(t, late))
		}
	}
}

// TestReadOnce: the entries of a root that was made, or labelled, 20 ms ago are read once.
func TestReadOnce(t *testing.T) {
	treetest.Each(t, func(t *testing.T, dir string) {
		root := grow(t, dir, plain)
		for _, label := range []string{newLabel, newLabel, oldLabel} {
			time.Sleep(20 * time.Millisecond)
			var asked atomic.Int64
			r, err := Tree(t.Context(), root, label, &Options{Throttle: func(_ context.Context, n int) error {
				asked.Add(int64(n))
				return nil
			}})
			adds(t, r)
			if err != nil || !r.Complete || asked.Load() != r.Seen-1 {
				t.Errorf("%d of %d entries were asked for: %+v, %v", asked.Load(), r.Seen-1, r, err)
			}
		}
	})
}
