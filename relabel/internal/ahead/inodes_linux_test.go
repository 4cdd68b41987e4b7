// SPDX-License-Identifier: Apache-2.0

package ahead

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/fastlabel/fastlabel/relabel/internal/mounts"
	"github.com/fastlabel/fastlabel/relabel/internal/sys"
	"github.com/fastlabel/fastlabel/relabel/internal/xattrio"
	"github.com/fastlabel/fastlabel/test/treetest"
)

// TestReadInodes: the inodes of a directory's entries are asked for, each once. A few
// names, or such whose inodes lie apart, are worth no call; nor is any before the disk is
// cold, or where it cannot be done.
func TestReadInodes(t *testing.T) {
	treetest.Need(t, "root", "xfs", "tmpfs")
	const files = 2000
	volume := treetest.Fresh(t, "xfs")
	root := filepath.Join(volume, "tree")
	treetest.Build(t, root, treetest.Text(t, fmt.Sprintf("dir .\nfile f%%04d x%d\n", files)))
	dir, err := os.Open(root)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	fd := int(dir.Fd())
	var records []byte
	for buf := make([]byte, 1<<16); ; {
		n, e := sys.Getdents(fd, buf)
		if e != 0 {
			t.Fatal(e)
		}
		if n == 0 {
			break
		}
		records = append(records, buf[:n]...)
	}
	// asked counts the inodes that this filesystem was asked for.
	st, e := sys.Fstatx(fd)
	if e != 0 {
		t.Fatal(e)
	}
	m := &mounts.Mount{Stat: st, Clusters: true}
	disk := m.OpenDisk()
	if disk < 0 {
		t.Fatal("the device cannot be opened")
	}
	defer sys.Close(disk)
	device, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", disk))
	if err != nil {
		t.Fatal(err)
	}
	asked := func() (n int) {
		text, err := os.ReadFile(filepath.Join("/sys/fs/xfs", filepath.Base(device), "stats/stats"))
		if err == nil {
			_, err = fmt.Sscanf(string(text[max(0, bytes.Index(text, []byte("\nig "))):]), "\nig %d", &n)
		}
		if err != nil {
			t.Fatal(err)
		}
		return n
	}

	const first, one = 2 * 24, 32 // bytes of "." and "..", and of each of the others
	few := records[:first+(fewest-1)*one]
	apart := append(slices.Clone(few), records[len(records)-fewest*one:]...)
	for _, test := range []struct {
		name    string
		m       *mounts.Mount
		cold    bool
		records []byte
		want    int
	}{
		{"all", m, true, records, files},
		{"few", m, true, few, 0},
		{"apart", m, true, apart, 0},
		{"warm", m, false, records, 0},
		{"ext4", &mounts.Mount{Stat: st}, true, records, 0},
		{"cut", m, true, records[:len(records)-8], 0},
	} {
		a := &Disk{}
		a.SetCold(test.cold)
		calls, before := 0, asked()
		a.Inodes(test.m, fd, test.records, func(xattrio.SyscallKind) { calls++ })
		// XFS comes to some more: the directory, and what lies between.
		if n := asked() - before; n < test.want || n > test.want+test.want/8 || test.want == 0 && calls > 0 {
			t.Errorf("%s: %d inodes by %d calls, want %d", test.name, n, calls, test.want)
		}
	}

	other, err := os.Open(treetest.Fresh(t, "tmpfs"))
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	a := &Disk{}
	a.SetCold(true)
	if a.Inodes(m, int(other.Fd()), records, func(xattrio.SyscallKind) {}); a.Pays() {
		t.Error("it is tried again where it cannot be done")
	}
}
