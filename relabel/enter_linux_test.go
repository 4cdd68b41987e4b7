// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/fastlabel/fastlabel/test/treetest"
)

// TestVisitOrder: a directory is labelled before its entries are read, also where
// nobody is told of each: what is created in it from then on inherits.
func TestVisitOrder(t *testing.T) {
	treetest.Need(t, "root", "seccomp", "setxattrat", "tmpfs")
	root := filepath.Join(on(t, "tmpfs"), "tree")
	treetest.Build(t, root, treetest.Text(t, "default label="+oldLabel+"\ndir d\nfile d/a\ndir d/e\nfile d/e/b\ndir f\n"))
	top, err := os.Stat(root)
	if err != nil {
		t.Fatal(err)
	}
	labelled, read := map[uint64]bool{}, 0
	cmd := exec.Command(treetest.Command(t), "-q", "-T", "1", "--label", newLabel, root)
	treetest.Supervise(t, cmd, []int{unix.SYS_FSETXATTR, unix.SYS_GETDENTS64, unix.SYS_CLOSE}, func(n treetest.Notice) treetest.Answer {
		switch fd := n.Args[0]; n.Nr {
		case unix.SYS_FSETXATTR:
			labelled[fd] = true
		case unix.SYS_CLOSE:
			delete(labelled, fd)
		default:
			at, err := os.Stat(fmt.Sprintf("/proc/%d/fd/%d", n.PID, fd))
			if err != nil {
				t.Error(err)
			}
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
