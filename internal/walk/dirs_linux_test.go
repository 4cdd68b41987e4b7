// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/fastlabel/fastlabel/internal/mounts"
	"github.com/fastlabel/fastlabel/internal/sys"
	"github.com/fastlabel/fastlabel/test/treetest"
)

// TestDeepPath: the path in a message has the root and the end of a deep path, and
// no one looks at the directories between.
func TestDeepPath(t *testing.T) {
	m := &mounts.Mount{Path: "/root"}
	top := &directory{mount: m}
	chain := func(d *directory, levels int) *directory {
		for range levels {
			d = &directory{parent: d, name: "d\x00", mount: m}
		}
		return d
	}
	if got, want := chain(top, 2000).Path("f"), "/root"+strings.Repeat("/d", 2000)+"/f"; got != want {
		t.Errorf("2,000 levels: %d bytes, want %d", len(got), len(want))
	}
	unnamed := &directory{parent: chain(top, 3), mount: m} // who looks at its name panics
	got := chain(unnamed, 2*pathMost).Path("f")
	if !strings.HasPrefix(got, "/root/…/d/d/") || !strings.HasSuffix(got, "/d/d/f") || len(got) < pathMost || len(got) > pathMost+20 {
		t.Errorf("%d bytes: %.20s", len(got), got)
	}
	defer func() {
		if recover() == nil {
			t.Error("control: an unnamed directory has a path")
		}
	}()
	unnamed.Path("")
}

// openDir opens the directory path, which is closed by what it is given to.
func openDir(t *testing.T, path string) int {
	t.Helper()
	fd, e := sys.Openat(sys.AtFdcwd, sys.Cname(path), sys.OpenDir, 0)
	if e != 0 {
		t.Fatal(e)
	}
	return fd
}

// TestReentry: a directory in use is not closed; one that was closed is found
// again, and another one in its place is not taken for it.
func TestReentry(t *testing.T) {
	root := t.TempDir()
	for _, name := range []string{"d", "other"} {
		treetest.Must(t, os.Mkdir(filepath.Join(root, name), 0o700))
	}
	c, m := dirCache{limit: 2}, &mounts.Mount{Confined: mounts.Clone, Path: root}
	top := &directory{mount: m, fd: int32(openDir(t, root)), shared: true}
	defer sys.Close(top.FD())
	d := c.opened(top, "d\x00", openDir(t, filepath.Join(root, "d")), "", nil)
	for range 3 {
		c.expect(d)
	}
	c.release(d)
	for _, closed := range []bool{false, true} {
		if _, op, e := c.acquire(d); e != 0 {
			t.Fatalf("closed before %t: %s: %v", closed, op, e)
		}
		if c.closeIdle() {
			t.Fatal("a directory in use was closed")
		}
		c.release(d)
		if !c.closeIdle() || d.fd >= 0 {
			t.Fatal("a directory without workers stays open")
		}
	}
	treetest.Must(t, unix.Renameat2(unix.AT_FDCWD, filepath.Join(root, "d"), unix.AT_FDCWD, filepath.Join(root, "other"), unix.RENAME_EXCHANGE))
	if _, _, e := c.acquire(d); e != syscall.ESTALE {
		t.Errorf("another directory in its place: %v", e)
	}
}

// TestMovedCache: after the walk goes on in another mount, a directory that is gone with those
// above it was removed; one that was taken out of what is gone lies elsewhere.
func TestMovedCache(t *testing.T) {
	for name, c := range map[string]struct {
		gone func(root string) error
		want sys.Errno
	}{
		"there":   {func(string) error { return nil }, 0},
		"removed": {func(root string) error { return os.RemoveAll(filepath.Join(root, "d")) }, syscall.ENOENT},
		"renamed": {func(root string) error {
			return errors.Join(os.Rename(filepath.Join(root, "d/e"), filepath.Join(root, "e")), os.Remove(filepath.Join(root, "d")))
		}, syscall.ESTALE},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			treetest.Must(t, os.MkdirAll(filepath.Join(root, "d/e"), 0o700))
			cache, m := dirCache{limit: 8}, &mounts.Mount{Confined: mounts.Clone, Path: root}
			first := openDir(t, root)
			defer sys.Close(first)
			top := &directory{mount: m, fd: int32(first), shared: true}
			d := cache.opened(top, "d\x00", openDir(t, filepath.Join(root, "d")), "", nil)
			e := cache.opened(d, "e\x00", openDir(t, filepath.Join(root, "d/e")), "", nil)
			cache.expect(d)
			cache.expect(e)
			cache.release(e)
			cache.unpin(d, 1) // nothing in it is expected any more: it is closed
			cache.move(top, openDir(t, root))
			treetest.Must(t, c.gone(root))
			if _, op, errno := cache.acquire(e); errno != c.want {
				t.Errorf("%s: %v, want %v", op, errno, c.want)
			}
		})
	}
}
