// SPDX-License-Identifier: Apache-2.0

package sys

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/fastlabel/fastlabel/test/treetest"
)

func TestMain(m *testing.M) { os.Exit(treetest.Main(m)) }

// everyKind holds an entry of each kind.
const everyKind = "file file\ndir dir\nlink link nowhere\nfifo fifo\nsocket socket\nchar char 1:3\nblock block 7:0\nfile - mode=0000"

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

// TestXattr sets and gets the label of each kind of entry in each way. None of them opens the entry: a FIFO without a writer would hang, a
// socket and the block device, which has no disk, would refuse.
func TestXattr(t *testing.T) {
	treetest.Need(t, "root", "setxattrat")
	treetest.Each(t, func(t *testing.T, dir string) {
		fd := within(t, dir, everyKind)
		for i, way := range []Way{ByName, ByThread, ByDescriptor} {
			label := fmt.Sprintf("u:r:t:s0:c%d\x00", i)
			for name, holds := range treetest.Read(t, ".") {
				if name == "." {
					continue
				}
				at := fd
				if way == ByDescriptor {
					var e Errno
					if at, e = Openat(fd, Cname(name), OpenPath, 0); e != 0 {
						t.Fatal(e)
					}
					t.Cleanup(func() { Close(at) })
				}
				a := NewAttr(treetest.Attr, label)
				n, e := a.Get(way, at, Cname(name))
				if holds == treetest.None && e != unix.ENODATA || holds != treetest.None && (e != 0 || strings.TrimSuffix(string(a.Value(n)), "\x00") != holds) {
					t.Errorf("%d: %s has %q, want %q: %v", way, name, a.Value(max(n, 0)), holds, e)
				}
				if e := a.Set(way, at, Cname(name)); e != 0 {
					t.Errorf("%d: %s: %v", way, name, e)
				}
				n, e = a.Get(way, at, Cname(name))
				if e != 0 || string(a.Value(n)) != label {
					t.Errorf("%d: %s has %q afterwards: %v", way, name, a.Value(max(n, 0)), e)
				}
			}
			for name, holds := range treetest.Read(t, ".") {
				if name != "." && holds != strings.TrimSuffix(label, "\x00") {
					t.Errorf("%d: %s has %q by other means", way, name, holds)
				}
			}
			at := fd
			if way == ByDescriptor {
				at = 1 << 30
			}
			if e := NewAttr(treetest.Attr, label).Set(way, at, Cname("none")); e != unix.ENOENT {
				t.Errorf("%d: what is not there: %v", way, e)
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
		all = append(all, NewAttr(treetest.Attr, fmt.Sprintf("u:r:t:s0:c%d", i)))
	}
	for range 3 {
		runtime.GC()
		for i, a := range all {
			if e := a.Set(ByName, fd, Cname("f")); e != 0 {
				t.Fatal(e)
			}
			if n, e := a.Get(ByName, fd, Cname("f")); e != 0 || treetest.Shown(a.Value(n)) != fmt.Sprintf("u:r:t:s0:c%d", i) {
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
