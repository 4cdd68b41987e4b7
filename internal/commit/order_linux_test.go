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

// orderAt asks for the order of the filesystem at dir.
func orderAt(t *testing.T, dir string) Order {
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
	return OrderOf(fd, kind)
}

// TestOrderOf: which filesystems keep the order of labels.
func TestOrderOf(t *testing.T) {
	for kind, want := range map[string]Order{"ext4": Ordered, "xfs": Ordered, "btrfs": Transactions, "tmpfs": Volatile} {
		t.Run(kind, func(t *testing.T) {
			if is := orderAt(t, treetest.Fresh(t, kind)); is != want {
				t.Errorf("%d", is)
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
			if out, err := exec.Command(cmd[0], cmd[1:]...).CombinedOutput(); err != nil {
				t.Fatalf("%q: %v\n%s", cmd, err, out)
			}
		}
		defer func() {
			treetest.Check(t, unix.Unmount(dir, 0))
		}()
		if is := orderAt(t, dir); is != Unordered {
			t.Errorf("%d", is)
		}
	})
	if is := orderAt(t, "/proc"); is != Unordered {
		t.Errorf("what is not known: %d", is)
	}
}
