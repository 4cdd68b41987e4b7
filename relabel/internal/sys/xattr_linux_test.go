// SPDX-License-Identifier: Apache-2.0

package sys

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

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

// TestXattrOpen is the same for what is open already.
func TestXattrOpen(t *testing.T) {
	treetest.Need(t, "root", "tmpfs")
	fd := within(t, treetest.Fresh(t, "tmpfs"), everyKind)
	a := NewAttr(treetest.Attr, []byte("u:r:t:s0"))
	if _, e := a.Fgetxattr(fd); (e == unix.ENODATA) == treetest.Policed() {
		t.Error(e)
	}
	if e := a.Fsetxattr(fd); e != 0 {
		t.Error(e)
	}
	if n, e := a.Fgetxattr(fd); e != 0 || treetest.Shown(a.Value(n)) != "u:r:t:s0" || treetest.Read(t, ".")["."] != "u:r:t:s0" {
		t.Errorf("%q, %v", a.Value(max(n, 0)), e)
	}
	if e := a.Fsetxattr(-1); e != unix.EBADF {
		t.Error(e)
	}
}

// TestLongValue: what does not fit into the buffer is said not to fit.
func TestLongValue(t *testing.T) {
	treetest.Need(t, "root", "tmpfs", "setxattrat", "plain")
	fd := within(t, treetest.Fresh(t, "tmpfs"), "file f")
	for length, want := range map[int]Errno{4096: 0, 4097: unix.ERANGE} {
		a := NewAttr(treetest.Attr, []byte(strings.Repeat("x", length)))
		if e := a.Setxattrat(fd, Cname("f")); e != 0 {
			t.Fatal(e)
		}
		if n, e := a.Getxattrat(fd, Cname("f")); e != want || e == 0 && n != length {
			t.Errorf("%d bytes: %d, %v", length, n, e)
		}
	}
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

// TestHas: the machine has what was promised, and asking leaves no trace.
func TestHas(t *testing.T) {
	treetest.Need(t, "setxattrat")
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	if !HasXattrat() || !HasOpenat2() {
		t.Errorf("xattrat %t, openat2 %t", HasXattrat(), HasOpenat2())
	}
	if now, err := os.ReadDir("/proc/self/fd"); err != nil || len(now) != len(open) {
		t.Errorf("%d descriptors are open, %d were: %v", len(now), len(open), err)
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

// TestAllocations: no call for an entry allocates.
func TestAllocations(t *testing.T) {
	treetest.Need(t, "root", "tmpfs", "setxattrat")
	fd := within(t, treetest.Fresh(t, "tmpfs"), "file f")
	a, name, record := NewAttr(treetest.Attr, []byte("u:r:t:s0")), Cname("f"), encode(1, KindFile, "f")
	pinned, e := Openat(fd, name, OpenPath, 0)
	if e != 0 {
		t.Fatal(e)
	}
	defer Close(pinned)
	calls := map[string]func(){
		"parse": func() {
			d, _, err := Parse(record)
			if err != nil || IsDot(d.Name) || d.Cname() == nil {
				t.Error(err)
			}
		},
		"statx":   func() { _, _ = Statx(fd, name) },
		"mountid": func() { _, _ = Fmount(fd) },
		"handle":  func() { _, _ = FmountByHandle(fd) },
		"openat2": func() {
			other, _ := Openat2(fd, name, OpenPath, Confined)
			Close(other)
		},
	}
	for _, by := range accesses {
		calls["set "+by.name] = func() {
			if e := by.set(a, fd, pinned, name); e != 0 {
				t.Error(e)
			}
		}
		calls["get "+by.name] = func() {
			if _, e := by.get(a, fd, pinned, name); e != 0 {
				t.Error(e)
			}
		}
		by.set(a, fd, pinned, name)
	}
	for what, call := range calls {
		if n := testing.AllocsPerRun(1000, call); n != 0 {
			t.Errorf("%s: %v allocations", what, n)
		}
	}
	var sink *time.Time
	if n := testing.AllocsPerRun(1000, func() { sink = new(time.Time) }); n != 1 || sink == nil {
		t.Errorf("control: %v allocations", n)
	}
}
