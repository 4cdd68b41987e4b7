// SPDX-License-Identifier: Apache-2.0

package sys

import (
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/fastlabel/fastlabel/test/treetest"
)

// everyKind holds an entry of each kind.
const everyKind = "file file\ndir dir\nlink link nowhere\nfifo fifo\nsocket socket\nchar char 1:3\nblock block 7:0\nfile - mode=0000"

// access is one pair of calls on the entry name, of which pinned is an O_PATH
// descriptor, in the open directory dir.
type access struct {
	name string
	set  func(a *Attr, dir, pinned int, name *byte) Errno
	get  func(a *Attr, dir, pinned int, name *byte) (int, Errno)
}

var accesses = []access{
	{
		"xattrat",
		func(a *Attr, dir, _ int, name *byte) Errno { return a.Setxattrat(dir, name) },
		func(a *Attr, dir, _ int, name *byte) (int, Errno) { return a.Getxattrat(dir, name) },
	},
	{ // in the working directory
		"lxattr",
		func(a *Attr, _, _ int, name *byte) Errno { return a.Lsetxattr(name) },
		func(a *Attr, _, _ int, name *byte) (int, Errno) { return a.Lgetxattr(name) },
	},
	{
		"xattr through /proc",
		func(a *Attr, _, pinned int, _ *byte) Errno { return a.SetxattrFd(pinned) },
		func(a *Attr, _, pinned int, _ *byte) (int, Errno) { return a.GetxattrFd(pinned) },
	},
}

// within makes the tree, enters it, and gives its directory.
func within(t *testing.T, dir, tree string) int {
	t.Helper()
	root := filepath.Join(dir, "tree")
	treetest.Build(t, root, treetest.Text(t, tree))
	t.Chdir(root)
	fd, e := Openat(AtFdcwd, Cname("."), OpenDir, 0)
	if e != 0 {
		t.Fatal(e)
	}
	t.Cleanup(func() { Close(fd) })
	return fd
}

// TestXattr sets and gets the label of each kind of entry by each pair of
// calls. None of them opens the entry: a FIFO without a writer would hang, a
// socket and the block device, which has no disk, would refuse.
func TestXattr(t *testing.T) {
	treetest.Need(t, "root", "setxattrat")
	treetest.Each(t, func(t *testing.T, dir string) {
		fd := within(t, dir, everyKind)
		for i, by := range accesses {
			label := fmt.Sprintf("u:r:t:s0:c%d\x00", i)
			for name, holds := range treetest.Read(t, ".") {
				if name == "." {
					continue
				}
				before := holds
				if i > 0 {
					before = fmt.Sprintf("u:r:t:s0:c%d\x00", i-1)
				}
				pinned, e := Openat(fd, Cname(name), OpenPath, 0)
				if e != 0 {
					t.Fatal(e)
				}
				a := NewAttr(treetest.Attr, []byte(label))
				n, e := by.get(a, fd, pinned, Cname(name))
				if before == treetest.None && e != unix.ENODATA || before != treetest.None && (e != 0 || treetest.Shown(a.Value(n)) != treetest.Shown([]byte(before))) {
					t.Errorf("%s: %s has %q, want %q: %v", by.name, name, a.Value(max(n, 0)), before, e)
				}
				if e := by.set(a, fd, pinned, Cname(name)); e != 0 {
					t.Errorf("%s: %s: %v", by.name, name, e)
				}
				n, e = by.get(a, fd, pinned, Cname(name))
				if e != 0 || string(a.Value(n)) != label {
					t.Errorf("%s: %s has %q afterwards: %v", by.name, name, a.Value(max(n, 0)), e)
				}
				Close(pinned)
			}
			for name, holds := range treetest.Read(t, ".") {
				if name != "." && holds != strings.TrimSuffix(label, "\x00") {
					t.Errorf("%s: %s has %q by other means", by.name, name, holds)
				}
			}
			a := NewAttr(treetest.Attr, []byte(label))
			if e := by.set(a, fd, 1<<30, Cname("none")); e != unix.ENOENT {
				t.Errorf("%s: what is not there: %v", by.name, e)
			}
		}
	})
}

// TestAttrHolds: the addresses in an Attr stay right while the collector runs
// and stacks grow.
func TestAttrHolds(t *testing.T) {
	treetest.Need(t, "root", "tmpfs", "setxattrat")
	fd := within(t, treetest.Fresh(t, "tmpfs"), "file f")
	var all []*Attr
	for i := range 200 {
		all = append(all, NewAttr(treetest.Attr, fmt.Appendf(nil, "u:r:t:s0:c%d", i)))
	}
	for range 3 {
		runtime.GC()
		for i, a := range all {
			if e := a.Setxattrat(fd, Cname("f")); e != 0 {
				t.Fatal(e)
			}
			if n, e := a.Getxattrat(fd, Cname("f")); e != 0 || treetest.Shown(a.Value(n)) != fmt.Sprintf("u:r:t:s0:c%d", i) {
				t.Fatalf("%d: %q, %v", i, a.Value(max(n, 0)), e)
			}
		}
	}
}

// TestRetry: a call that signals interrupt is made until it has an answer.
func TestRetry(t *testing.T) {
	calls := 0
	n, e := retry(func() (uintptr, uintptr, Errno) {
		if calls++; calls < 3 {
			return ^uintptr(0), 0, unix.EINTR
		}
		return 7, 0, unix.EAGAIN
	})
	if calls != 3 || n != 7 || e != unix.EAGAIN {
		t.Errorf("%d calls, %d, %v", calls, n, e)
	}
}
