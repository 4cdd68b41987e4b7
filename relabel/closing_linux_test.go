// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fastlabel/fastlabel/test/treetest"
)

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
		if err := os.WriteFile(filepath.Join(root, name), nil, 0o600); err != nil {
			t.Error(err)
		}
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
// label on leaves no root that vouches for what was created there during the run, and the
// next run labels that. To who reads the label alone it vouches for no more than what was
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
		s, err := Inspect(root, newLabel, TrustRoot)
		if err != nil || s.Label != newLabel || s.Interrupted == s.Labelled || s.Labelled && !late(root) || !killed && !s.Labelled {
			t.Errorf("killed before call %d: %+v, %v", n, s, err)
		}
		if labelOf(t, filepath.Join(root, "early")) != newLabel {
			t.Errorf("killed before call %d: the root has the label, and what came before does not", n)
		}
		if !late(root) {
			wrong++
		}
		r, err := Tree(t.Context(), root, newLabel, &Options{Trust: TrustRoot, Trace: &Trace{Change: func(path, _, _ string) {
			if path != root && labelOf(t, root) == newLabel {
				t.Errorf("after call %d: the root has the label when %s is written", n, path)
			}
		}}})
		if err != nil || !r.Complete || !late(root) || vouching(t, root, newLabel) != newLabel {
			t.Errorf("after call %d: %+v, %v", n, r, err)
		}
		unclaimed(t, root)
	}
	if wrong == 0 {
		t.Error("nothing was wrong when it was killed")
	}
	root := grow(t, dir, few)
	closed(t, exec.Command(treetest.Command(t), "-q", "--sync", "--label", newLabel, root), root, 1, false)
	if ok, err := isLabelled(root, newLabel, TrustRoot); err != nil || !ok || late(root) || len(bearing(t, root, oldLabel)) != 1 {
		t.Errorf("without a claim: %t, %v, %q", ok, err, bearing(t, root, oldLabel))
	}
}
