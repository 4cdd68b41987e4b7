// SPDX-License-Identifier: Apache-2.0

//go:build linux

package inside

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/fastlabel/fastlabel/test/treetest"
)

// sealed fails the test unless root has neither the old label nor the new,
// is said not to be labelled, and is closed to those that neither label is for.
func sealed(t *testing.T, root string) {
	t.Helper()
	seal := labelOf(t, root)
	if seal == labelA || seal == labelB {
		t.Errorf("the root has %s, which is trusted for a tree that is not done", seal)
	}
	for _, l := range []string{labelA, labelB} {
		label(t, 4, "probe", "--label", l, root)
	}
	for _, p := range []string{".", "top", "a", "a/b/c/deep"} {
		may(t, false, domainC, filepath.Join(root, p))
	}
}

// TestInterrupted: a relabel from one container's label to another's, killed
// when the root is sealed, leaves a seal that is trusted for neither, under which
// nobody else reads; the next run completes it. The control is the tree
// before: each process that may read it does.
func TestInterrupted(t *testing.T) {
	each(t, func(t *testing.T, dir string) {
		root := grow(t, dir)
		treetest.Build(t, mkdir(t, root, "more"), treetest.Text(t, "dir d%d x40\nfile d0/f%d x2000"))
		label(t, 0, "--label", labelA, root)
		may(t, true, domainA, root)
		may(t, false, domainC, root)

		// On one processor the walk may end before this test gets its turn.
		for try := 0; !interrupt(t, root); try++ {
			if try == 20 {
				t.Fatal("it was always done before it was killed: the tree is too small")
			}
			if all(t, root, labelB); t.Failed() {
				return // it said what was not so
			}
			label(t, 0, "--label", labelA, root)
		}
		sealed(t, root)
		t.Logf("the seal is %s", labelOf(t, root))
		may(t, true, domainB, root)
		may(t, false, domainA, root)

		label(t, 0, "--label", labelB, root)
		all(t, root, labelB)
		may(t, true, domainB, root)
	})
}

// interrupt relabels root for B and kills that when the root is sealed. It
// gives false if all was done by then.
func interrupt(t *testing.T, root string) bool {
	t.Helper()
	cmd := exec.Command(command, "--label", labelB, root)
	treetest.Must(t, cmd.Start())
	treetest.Wait(t, "the seal", func() bool { return labelOf(t, root) != labelA })
	treetest.Must(t, cmd.Process.Kill())
	_ = cmd.Wait() // killed, as it should be
	return labelOf(t, root) != labelB
}

// immutable is FS_IMMUTABLE_FL in linux/fs.h.
const immutable = 0x10

// TestFailed: the same where one entry cannot be labelled.
func TestFailed(t *testing.T) {
	each(t, func(t *testing.T, dir string) {
		root := grow(t, dir)
		label(t, 0, "--label", labelA, root)
		f, err := os.Open(filepath.Join(root, "a/f3"))
		treetest.Must(t, err)
		defer f.Close()
		treetest.Must(t, unix.IoctlSetPointerInt(int(f.Fd()), unix.FS_IOC_SETFLAGS, immutable))
		out := label(t, 1, "--label", labelB, root)
		treetest.Must(t, unix.IoctlSetPointerInt(int(f.Fd()), unix.FS_IOC_SETFLAGS, 0))
		if !strings.Contains(out, "a/f3") {
			t.Errorf("the failure is not named:\n%s", out)
		}
		sealed(t, root)
		may(t, true, domainB, root)
		label(t, 0, "--label", labelB, root)
		all(t, root, labelB)
	})
}
