// SPDX-License-Identifier: Apache-2.0

package sys

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/fastlabel/fastlabel/test/treetest"
)

func TestMain(m *testing.M) { os.Exit(treetest.Main(m)) }

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
