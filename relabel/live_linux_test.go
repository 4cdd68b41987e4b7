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
	"syscall"
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
	treetest.Check(t, os.Chtimes(root, time.Time{}, time.Now().Add(-age)))
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
		treetest.Check(t, err)
	}
	return 6
}

// TestCreatedAndBackdated: tar and rsync set a directory's modification time
// back after they have created entries in it.
func TestCreatedAndBackdated(t *testing.T) {
	root := grow(t, on(t, "tmpfs"), growing)
	when := time.Now().Add(-time.Hour)
	treetest.Must(t, os.Chtimes(root, when, when))
	made := 0
	r, err := Tree(t.Context(), root, newLabel, &Options{Workers: 1, Trace: &Trace{Change: func(path, _, _ string) {
		if strings.HasSuffix(path, "f200") {
			made = create(t, root, 1)
			treetest.Check(t, os.Chtimes(root, when, when))
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
		treetest.Must(t, os.Chtimes(root, when, when))
		late := filepath.Join(root, "late")
		cmd := exec.Command(treetest.Command(t), "-q", "--label", newLabel, root)
		end := treetest.Supervise(t, cmd, []int{unix.SYS_FSETXATTR}, func(c treetest.Notice) treetest.Answer {
			if c.Same == 3 { // after claim and seal
				if n := len(bearing(t, root, newLabel)); n != 20 {
					t.Errorf("%d entries have the label before the root has it", n)
				}
				treetest.Check(t, os.WriteFile(late, nil, 0o600))
				treetest.Set(t, root, "late", oldLabel)
				if back {
					treetest.Check(t, os.Chtimes(root, when, when))
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

// changing are the calls by which a run changes something, or has it on disk. Killed before
// any other it leaves what it leaves before the next of these.
var changing = []int{
	unix.SYS_FSETXATTR, unix.SYS_FREMOVEXATTR, unix.SYS_FSYNC, unix.SYS_SYNCFS, unix.SYS_SETXATTRAT, unix.SYS_SETXATTR, unix.SYS_LSETXATTR,
}

// closed has cmd killed before its call n from the root's label on, while others create
// entries of another label in the root: one when all else is labelled, one right before
// the root's label. Where claimed is false no claim can be left.
func closed(t *testing.T, cmd *exec.Cmd, root string, n int, claimed bool) treetest.Ended {
	t.Helper()
	add := func(name string) {
		treetest.Check(t, os.WriteFile(filepath.Join(root, name), nil, 0o600))
		treetest.Set(t, root, name, oldLabel)
	}
	after, synced := 0, false
	return treetest.Supervise(t, cmd, changing, func(c treetest.Notice) treetest.Answer {
		switch {
		case after > 0 || labelOf(t, root) == newLabel:
			after++
		case !claimed && c.Nr == unix.SYS_FSETXATTR && c.Same == 1:
			return treetest.Answer{Errno: syscall.EPERM}
		case c.Nr == unix.SYS_SYNCFS && !synced:
			synced = true
			time.Sleep(20 * time.Millisecond) // the root's times tell it from the seal
			add("early")
		case c.Nr == unix.SYS_FSETXATTR && synced:
			add("late")
		}
		return treetest.Answer{Kill: after == n}
	})
}

// TestKilledClosing: a run that is killed anywhere from its root's
// label on leaves no root that is trusted for what was created there during the run, and the
// next run labels that. To who reads the label alone it is trusted for no more than what was
// created since the root was read a last time before.
func TestKilledClosing(t *testing.T) {
	treetest.Need(t, "root", "seccomp")
	dir := on(t, "tmpfs")
	const few = "default label=" + oldLabel + "\ndir .\nfile f%d x3\ndir d\nfile d/f\n"
	late := func(root string) bool { return labelOf(t, filepath.Join(root, "late")) == newLabel }
	killed, wrong := true, 0
	for n := 1; killed; n++ {
		root := filepath.Join(dir, fmt.Sprint(n))
		treetest.Build(t, root, treetest.Text(t, few))
		killed = closed(t, exec.Command(treetest.Command(t), "-q", "-T", "1", "--sync", "--label", newLabel, root), root, n, true).Killed
		s, err := Inspect(root, newLabel, SkipRoot)
		if err != nil || s.Label != newLabel || s.Interrupted == s.Labelled || s.Labelled && !late(root) || !killed && !s.Labelled {
			t.Errorf("killed before call %d: %+v, %v", n, s, err)
		}
		if labelOf(t, filepath.Join(root, "early")) != newLabel {
			t.Errorf("killed before call %d: the root has the label, and what came before does not", n)
		}
		if !late(root) {
			wrong++
		}
		r, err := Tree(t.Context(), root, newLabel, &Options{Skip: SkipRoot, Trace: &Trace{Change: func(path, _, _ string) {
			if path != root && labelOf(t, root) == newLabel {
				t.Errorf("after call %d: the root has the label when %s is written", n, path)
			}
		}}})
		if err != nil || !r.Complete || !late(root) || trusted(t, root, newLabel) != newLabel {
			t.Errorf("after call %d: %+v, %v", n, r, err)
		}
		unclaimed(t, root)
	}
	if wrong == 0 {
		t.Error("nothing was wrong when it was killed")
	}
	root := grow(t, dir, few)
	closed(t, exec.Command(treetest.Command(t), "-q", "--sync", "--label", newLabel, root), root, 1, false)
	if ok, err := isLabelled(root, newLabel, SkipRoot); err != nil || !ok || late(root) || len(bearing(t, root, oldLabel)) != 1 {
		t.Errorf("without a claim: %t, %v, %q", ok, err, bearing(t, root, oldLabel))
	}
}
