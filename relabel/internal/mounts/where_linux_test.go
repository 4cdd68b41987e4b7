// SPDX-License-Identifier: Apache-2.0

package mounts

import (
	"os"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/fastlabel/fastlabel/internal/mountinfo"
	"github.com/fastlabel/fastlabel/relabel/internal/sys"
	"github.com/fastlabel/fastlabel/test/treetest"
)

func TestMain(m *testing.M) { os.Exit(treetest.Main(m)) }

// mounted mounts a tmpfs until the test ends.
func mounted(t *testing.T, at string) {
	t.Helper()
	if err := unix.Mount("test", at, "tmpfs", 0, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(at, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
}

func mkdir(t *testing.T, path string) {
	t.Helper()
	if err := os.MkdirAll(path, 0o755); err != nil {
		t.Fatal(err)
	}
}

// TestBeyondPathMaxMoves: a mount beneath such a root that moves after the table was
// read is found, or is not said to be absent.
func TestBeyondPathMaxMoves(t *testing.T) {
	treetest.Need(t, "root", "tmpfs")
	top := t.TempDir()
	mounted(t, top)
	t.Chdir(top)
	for range 22 {
		name := strings.Repeat("d", 200)
		mkdir(t, name)
		t.Chdir(name)
	}
	mkdir(t, "root/a/m")
	t.Chdir("root")
	mounted(t, "a/m")
	p, err := OpenProc()
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	root, err := p.OpenRoot(".", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if err := p.Learn(root, Bounds{}); err != nil {
		t.Fatal(err)
	}
	read := func() {
		t.Helper()
		if p.Mounts, err = p.ReadTable(); err != nil {
			t.Fatal(err)
		}
	}
	where := func() (real string, e sys.Errno, found int) {
		t.Helper()
		real, e = p.where(root, p.Mounts)
		return real, e, len(mountinfo.Beneath(p.Mounts, real))
	}
	if real, e, found := where(); e != 0 || found != 1 || real != root.Real || root.Told() {
		t.Errorf("%d bytes, errno %d, %d mounts", len(real), e, found)
	}
	for _, c := range []struct {
		from, to string
		found    int // when the table is read again
	}{{"a", "z", 1}, {"z", "../z", 0}, {"../z", "a", 1}} {
		if err := os.Rename(c.from, c.to); err != nil {
			t.Fatal(err)
		}
		if _, e, _ := where(); e != syscall.EAGAIN {
			t.Errorf("%s moved to %s: errno %d by the table before", c.from, c.to, e)
		}
		read()
		if _, e, found := where(); e != 0 || found != c.found {
			t.Errorf("%s moved to %s: errno %d, %d mounts, want %d", c.from, c.to, e, found, c.found)
		}
	}
	mounted(t, "a") // over it
	read()
	if real, e, found := where(); e != 0 || found != 2 || real != root.Real {
		t.Errorf("hidden: %d bytes, errno %d, %d mounts", len(real), e, found)
	}
}
