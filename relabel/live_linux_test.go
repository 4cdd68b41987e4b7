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
// while what is deep in the tree is labelled. The root is new or old, or has its modification
// time set back after each, as by tar and rsync.
func TestCreatedMeanwhile(t *testing.T) {
	runs := sized(20, 6)
	for engine, m := range engines() {
		for _, age := range []string{"new", "old", "set back"} {
			date := func(root string) {
				if age != "new" {
					treetest.Check(t, os.Chtimes(root, time.Time{}, time.Now().Add(-time.Hour)))
				}
			}
			missed, made := 0, 0
			for i := range runs {
				root := grow(t, on(t, "tmpfs"), growing)
				date(root)
				n := 0
				r, err := tree(t.Context(), root, newLabel, Options{Workers: 1 + i%3, Trace: &Trace{Change: func(path, _, _ string) {
					if n++; strings.HasPrefix(filepath.Base(path), "f") && n > 10 && n%40 == 0 {
						made += create(t, root, n)
						if age == "set back" {
							date(root)
						}
					}
				}}}, as(m))
				adds(t, r)
				if err != nil || !r.Complete {
					t.Errorf("%s: %+v, %v", engine, r, err)
				}
				missed += len(treetest.Read(t, root)) - len(bearing(t, root, newLabel))
			}
			if missed > 0 || made < 10*runs {
				t.Errorf("%s, the root is %s: missed %d of %d", engine, age, missed, made)
			}
		}
	}
}

// create makes entries in the root, as many as it says.
func create(t *testing.T, root string, n int) int {
	dir := filepath.Join(root, fmt.Sprintf("dir%d", n))
	treetest.Check(
		t,
		os.WriteFile(filepath.Join(root, fmt.Sprintf("file%d", n)), nil, 0o600),
		os.Symlink("nowhere", filepath.Join(root, fmt.Sprintf("link%d", n))),
		os.MkdirAll(filepath.Join(dir, "deep"), 0o700),
		os.WriteFile(filepath.Join(dir, "file"), nil, 0o600),
		os.WriteFile(filepath.Join(dir, "deep", "file"), nil, 0o600),
	)
	return 6
}

// TestCreatedAtCommit: what is created in the root after that was read has the label before the
// root has it; what is created between the commit's last look at it and the root's label has it
// too, also if the root's modification time is set back.
func TestCreatedAtCommit(t *testing.T) {
	treetest.Need(t, "root", "seccomp")
	for _, what := range []string{"early", "late", "set back"} {
		root := grow(t, on(t, "tmpfs"), "default label="+oldLabel+"\ndir .\nfile f%d x20\n")
		when := time.Now().Add(-time.Hour)
		treetest.Must(t, os.Chtimes(root, when, when))
		create := func() {
			treetest.Check(t, os.WriteFile(filepath.Join(root, what), nil, 0o600))
			treetest.Set(t, root, what, oldLabel)
		}
		first, before := true, 20
		cmd := exec.Command(treetest.Command(t), "-q", "--label", newLabel, root)
		end := treetest.Supervise(t, cmd, []int{unix.SYS_FSETXATTR, unix.SYS_SETXATTR, unix.SYS_LSETXATTR, unix.SYS_SETXATTRAT}, func(c treetest.Notice) treetest.Answer {
			switch {
			case what == "early" && c.Nr != unix.SYS_FSETXATTR && int32(c.Args[0]) != -1 && first: // the root was read; by -1 it is asked whether there is setxattrat
				first, before = false, 21
				time.Sleep(20 * time.Millisecond) // the root's times tell it from the seal
				create()
			case c.Nr == unix.SYS_FSETXATTR && c.Same == 3: // after claim and seal
				if n := len(bearing(t, root, newLabel)); n != before {
					t.Errorf("%s: %d entries have the label before the root has it", what, n)
				}
				if what != "early" {
					create()
				}
				if what == "set back" {
					treetest.Check(t, os.Chtimes(root, when, when))
				}
			}
			return treetest.Answer{}
		})
		if n := len(bearing(t, root, newLabel)); end.Code != 0 || n != 22 || first && what == "early" {
			t.Errorf("%s: %d have the label: %+v", what, n, end)
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

// TestVisitOrder: a directory is labelled before its entries are read, also where
// nobody is told of each: what is created in it from then on inherits.
func TestVisitOrder(t *testing.T) {
	treetest.Need(t, "root", "seccomp", "setxattrat", "tmpfs")
	root := filepath.Join(on(t, "tmpfs"), "tree")
	treetest.Build(t, root, treetest.Text(t, "default label="+oldLabel+"\ndir d\nfile d/a\ndir d/e\nfile d/e/b\ndir f\n"))
	top, err := os.Stat(root)
	treetest.Must(t, err)
	labelled, read := map[uint64]bool{}, 0
	cmd := exec.Command(treetest.Command(t), "-q", "-T", "1", "--label", newLabel, root)
	treetest.Supervise(t, cmd, []int{unix.SYS_FSETXATTR, unix.SYS_GETDENTS64, unix.SYS_CLOSE}, func(n treetest.Notice) treetest.Answer {
		switch fd := n.Args[0]; n.Nr {
		case unix.SYS_FSETXATTR:
			labelled[fd] = true
		case unix.SYS_CLOSE:
			delete(labelled, fd)
		default:
			if !n.On(t, root) { // the command looks for a policy
				return treetest.Answer{}
			}
			at, err := os.Stat(fmt.Sprintf("/proc/%d/fd/%d", n.PID, fd))
			treetest.Check(t, err)
			if read++; !labelled[fd] && !os.SameFile(at, top) { // the root comes last
				t.Errorf("reading number %d is of a directory that is not labelled", read)
			}
		}
		return treetest.Answer{}
	})
	if read < 4 || len(bearing(t, root, newLabel)) != 6 {
		t.Errorf("%d readings", read)
	}
}
