// SPDX-License-Identifier: Apache-2.0

package commit

import (
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/fastlabel/fastlabel/internal/sys"
	"github.com/fastlabel/fastlabel/test/treetest"
)

// orderAt asks for the order of the filesystem at dir, and whether sysfs names its journal's task.
func orderAt(t *testing.T, dir string) (Order, bool) {
	t.Helper()
	fd, e := sys.Openat(sys.AtFdcwd, sys.Cname(dir), sys.OpenDir, 0)
	if e != 0 {
		t.Fatal(e)
	}
	defer sys.Close(fd)
	kind, e := sys.FSType(fd)
	if e != 0 {
		t.Fatal(e)
	}
	return OrderOf(fd, kind), journalTask(fd)
}

// TestOrderOf: which filesystems keep the order of labels.
func TestOrderOf(t *testing.T) {
	for kind, want := range map[string]Order{"ext4": Ordered, "xfs": Ordered, "btrfs": Transactions, "tmpfs": Volatile} {
		t.Run(kind, func(t *testing.T) {
			if is, task := orderAt(t, treetest.Fresh(t, kind)); is != want || task != (kind == "ext4") {
				t.Errorf("%d, and sysfs names a task: %t", is, task)
			}
		})
	}
	t.Run("ext4 without a journal", func(t *testing.T) {
		treetest.Need(t, "root", "ext4")
		scratch := treetest.Fresh(t, "tmpfs")
		image, dir := filepath.Join(scratch, "image"), filepath.Join(scratch, "dir")
		for _, cmd := range [][]string{
			{"truncate", "-s", "16M", image},
			{"mkfs.ext4", "-q", "-F", "-O", "^has_journal", image},
			{"mkdir", dir},
			{"mount", "-o", "loop", image, dir},
		} {
			treetest.Output(t, exec.Command(cmd[0], cmd[1:]...))
		}
		defer func() {
			treetest.Check(t, unix.Unmount(dir, 0))
		}()
		if is, task := orderAt(t, dir); is != Unordered || task {
			t.Errorf("%d, and sysfs names a task: %t", is, task)
		}
	})
	if is, _ := orderAt(t, "/proc"); is != Unordered {
		t.Errorf("what is not known: %d", is)
	}
}
