// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"fmt"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fastlabel/fastlabel/test/treetest"
)

// TestStretchesUnopened: where those who would help to read a directory have no descriptor
// for it, the one that has reads it all.
func TestStretchesUnopened(t *testing.T) {
	treetest.Need(t, "root", "ext4", "seccomp")
	const files = 8000 // of 200 bytes: more than a mebibyte of names
	root := mkdir(t, treetest.Fresh(t, "ext4"), "root")
	for i := range files {
		if err := unix.Mknod(fmt.Sprintf("%s/%0200d", root, i), unix.S_IFREG|0o600, 0); err != nil {
			t.Fatal(err)
		}
	}
	denied := 0
	for try := 0; try < 10 && denied == 0; try++ { // until a helper comes in time
		label := fmt.Sprintf("u:r:t:s0:c%d", try)
		cmd := exec.Command(treetest.Command(t), "-T", "4", "--label", label, root)
		calls := []int{unix.SYS_OPENAT, unix.SYS_OPENAT2, unix.SYS_GETDENTS64, unix.SYS_SYNCFS}
		walks := false // the root is opened before and after it too
		end := treetest.Supervise(t, cmd, calls, func(n treetest.Notice) (a treetest.Answer) {
			switch n.Nr {
			case unix.SYS_GETDENTS64:
				walks = n.Same == 1 || walks
				time.Sleep(2 * time.Millisecond)
			case unix.SYS_SYNCFS:
				walks = false
			default:
				if walks && n.Begins(t, 1, ".\x00") {
					denied++
					a.Errno = syscall.EMFILE
				}
			}
			return a
		})
		if has := len(bearing(t, root, label)); end.Code != 0 || has != files+1 {
			t.Errorf("%d of %d have the label: %+v", has, files+1, end)
		}
	}
	if denied == 0 {
		t.Error("no helper came in time")
	}
}
