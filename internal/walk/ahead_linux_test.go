// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/fastlabel/fastlabel/internal/mounts"
	"github.com/fastlabel/fastlabel/internal/sys"
	"github.com/fastlabel/fastlabel/internal/xattrio"
	"github.com/fastlabel/fastlabel/test/treetest"
)

// TestReadAhead: what lies around a directory is read with it, as long as that holds
// other directories; where there is no device, nothing is.
func TestReadAhead(t *testing.T) {
	treetest.Need(t, "root", "ext4")
	with := func(path string, f func(fd int)) {
		dir, err := os.Open(path)
		treetest.Must(t, err)
		defer dir.Close()
		f(int(dir.Fd()))
	}
	volume := treetest.Fresh(t, "ext4")
	root := filepath.Join(volume, "tree")
	const dirs = 400
	treetest.Build(t, root, treetest.Text(t, fmt.Sprintf("dir .\ndir d%%03d x%d\n", dirs)))
	st, e := sys.Statx(sys.AtFdcwd, sys.Cname(root))
	if e != 0 {
		t.Fatal(e)
	}
	m := &mounts.Mount{Stat: sys.Stat{Dev: st.Dev}}
	device := m.OpenDisk()
	if device < 0 {
		t.Fatal("the device cannot be opened")
	}
	defer sys.Close(device)
	dir := func(i int) string { return fmt.Sprintf("%s/d%03d", root, i) }
	var blocks []int64
	near := 0
	for i := range dirs {
		var extents [16]sys.Extent
		with(dir(i), func(fd int) {
			if n, e := sys.Extents(fd, &extents); e != 0 || n != 1 {
				t.Fatalf("%v, %v", extents[:n], e)
			}
		})
		if blocks = append(blocks, extents[0].At); blocks[i]/around == blocks[0]/around {
			near++
		}
	}
	if near < worth || near == dirs {
		t.Fatalf("%d directories lie near the first", near)
	}
	cached := func() (n int) {
		for _, at := range blocks {
			page, err := unix.Mmap(device, at&^4095, 4096, unix.PROT_READ, unix.MAP_SHARED)
			treetest.Must(t, err)
			var in byte
			if _, _, e := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(&page[0])), 4096, uintptr(unsafe.Pointer(&in))); e != 0 {
				t.Fatal(e)
			}
			n += int(in & 1)
			treetest.Must(t, unix.Munmap(page))
		}
		return n
	}
	// The device's memory is emptied.
	name, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", device))
	treetest.Must(t, err)
	treetest.Must(t, unix.Unmount(volume, 0))
	treetest.Must(t, unix.Fadvise(device, 0, 0, unix.FADV_DONTNEED))
	treetest.Must(t, unix.Mount(name, volume, "ext4", 0, ""))
	if n := cached(); n > 0 {
		t.Fatalf("%d are still there", n)
	}
	a := &disk{}
	a.cold.Store(true)
	defer a.close()

	ask := func(a *disk, m *mounts.Mount, dirs int) {
		for i := range dirs {
			with(dir(i), func(fd int) { a.ask(m, fd, func(xattrio.SyscallKind) {}) })
		}
	}
	// Whatever else runs on this machine may empty its caches: until all are seen at
	// once, all are asked for anew.
	anew := func(a *disk, dirs, want int) {
		treetest.Wait(t, "what lies near", func() bool {
			clear(a.asked)
			a.dirs = 0
			ask(a, m, dirs)
			return cached() == want
		})
	}
	anew(a, 1, near)
	anew(a, dirs, dirs)
	if n := len(a.asked); n > dirs/worth || a.dirs != dirs {
		t.Errorf("%d areas for %d directories", n, a.dirs)
	}

	clear(a.asked)
	a.dirs = 0
	for i := range int64(dirs + credit) {
		a.asked[-1-i] = true // and they held nothing
	}
	ask(a, m, dirs)
	if n := len(a.asked); n != dirs+credit {
		t.Errorf("%d areas were read after all", n-dirs-credit)
	}

	a = &disk{}
	a.cold.Store(true)
	ask(a, &mounts.Mount{Stat: sys.Stat{Dev: 0xffff << 32}}, 1)
	if a.pays() || len(a.asked) > 0 {
		t.Errorf("read without a device: %v", a.asked)
	}
}
