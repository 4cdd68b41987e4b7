// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/fastlabel/fastlabel/relabel/internal/mounts"
	"github.com/fastlabel/fastlabel/relabel/internal/sys"
	"github.com/fastlabel/fastlabel/relabel/internal/xattrio"
	"github.com/fastlabel/fastlabel/test/treetest"
)

// TestReadAhead: what lies around a directory is read with it, as long as that holds
// other directories; where there is no device, nothing is.
func TestReadAhead(t *testing.T) {
	treetest.Need(t, "root", "ext4")
	var files []*os.File
	open := func(path string) int {
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
		return int(f.Fd())
	}
	closeAll := func() {
		for _, f := range files {
			f.Close()
		}
		files = nil
	}
	defer closeAll()
	volume := treetest.Fresh(t, "ext4")
	root := filepath.Join(volume, "tree")
	const dirs = 400
	treetest.Build(t, root, treetest.Text(t, fmt.Sprintf("dir .\ndir d%%03d x%d\n", dirs)))
	st, e := sys.Place(open(root))
	if e != 0 {
		t.Fatal(e)
	}
	m := &mounts.Mount{Stat: sys.Stat{Dev: st.Dev}}
	no := func(xattrio.SyscallKind) {}
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
		n, e := sys.Extents(open(dir(i)), &extents)
		if e != 0 || n != 1 {
			t.Fatalf("%v, %v", extents[:n], e)
		}
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
			if err != nil {
				t.Fatal(err)
			}
			var in byte
			if _, _, e := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(&page[0])), 4096, uintptr(unsafe.Pointer(&in))); e != 0 {
				t.Fatal(e)
			}
			n += int(in & 1)
			if err := unix.Munmap(page); err != nil {
				t.Fatal(err)
			}
		}
		return n
	}
	// forget empties the device's memory.
	forget := func() *disk {
		closeAll()
		name, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", device))
		if err == nil {
			err = unix.Unmount(volume, 0)
		}
		if err == nil {
			err = unix.Fadvise(device, 0, 0, unix.FADV_DONTNEED)
		}
		if err == nil {
			err = unix.Mount(name, volume, "ext4", 0, "")
		}
		if err != nil || cached() > 0 {
			t.Fatalf("%v; %d are still there", err, cached())
		}
		a := &disk{}
		a.cold.Store(true)
		t.Cleanup(a.close)
		return a
	}

	// Whatever else runs on this machine may empty its caches: until all are seen at
	// once, all are asked for anew.
	first := func(a *disk) {
		fd := open(dir(0))
		treetest.Wait(t, "what lies near", func() bool {
			clear(a.asked)
			a.ask(m, fd, no)
			return cached() == near
		})
	}
	a := forget()
	first(a)
	var fds []int
	for i := range dirs {
		fds = append(fds, open(dir(i)))
	}
	treetest.Wait(t, "all", func() bool {
		clear(a.asked)
		a.dirs = 0
		for _, fd := range fds {
			a.ask(m, fd, no)
		}
		return cached() == dirs
	})
	if n := len(a.asked); n > dirs/worth || a.dirs != dirs {
		t.Errorf("%d pieces for %d directories", n, a.dirs)
	}

	a = forget()
	first(a)
	for i := range int64(dirs + credit) {
		a.asked[-1-i] = true // and they held nothing
	}
	for i := range dirs {
		a.ask(m, open(dir(i)), no)
	}
	if n := cached(); n > near {
		t.Errorf("%d were read after all", n-near)
	}

	a = forget()
	a.ask(&mounts.Mount{Stat: sys.Stat{Dev: 0xffff << 32}}, open(dir(0)), no)
	if n := cached(); n > 0 || a.pays() || len(a.asked) > 0 {
		t.Errorf("%d were read without a device: %v", n, a.asked)
	}
}
