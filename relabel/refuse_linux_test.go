// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/fastlabel/fastlabel/test/treetest"
)

// chroot chroots the process into root while call runs.
func chroot(t *testing.T, root string, call func()) {
	t.Helper()
	here, err := syscall.Open("/", syscall.O_RDONLY|syscall.O_DIRECTORY|syscall.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(here)
	cwd, err := syscall.Open(".", syscall.O_RDONLY|syscall.O_DIRECTORY|syscall.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(cwd)
	defer func() {
		if err := errors.Join(syscall.Fchdir(here), syscall.Chroot("."), syscall.Fchdir(cwd)); err != nil {
			panic(err) // what follows would be done in the wrong place
		}
	}()
	if err := errors.Join(syscall.Chroot(root), syscall.Chdir("/")); err != nil {
		t.Fatal(err)
	}
	call()
}

// TestRefusedLinks: on an ostree system most of the places that are never
// relabelled are links into /var. What they lead to is refused as they are; what
// lies in it is not.
func TestRefusedLinks(t *testing.T) {
	treetest.Need(t, "root")
	root := on(t, "tmpfs")
	mounted(t, "tmpfs", root, "")
	treetest.Build(t, root, treetest.Text(t, "default label="+oldLabel+`
dir .
dir proc
dir run
dir var
dir var/srv
dir var/srv/data
file var/srv/data/f
dir var/opt
dir var/opt/app
dir var/home
dir var/home/core
dir var/home/core/vol
dir var/roothome
dir var/roothome/vol
dir sysroot
dir sysroot/tmp
dir sysroot/tmp/vol
link srv var/srv
link opt var/opt
link home var/home
link root var/roothome
link tmp sysroot/tmp
`))
	mounted(t, "proc", filepath.Join(root, "proc"), "")
	t.Setenv("HOME", "/home/core")
	chroot(t, root, func() {
		for _, path := range []string{
			"/srv", "/srv/", "/var/srv", "/opt/", "/var/opt", "/home", "/home/", "/var/home", "/home/core", "/var/home/core",
			"/root", "/var/roothome", "/tmp/", "/sysroot/tmp", "/sysroot", "/var", "/",
		} {
			if r, err := Check(t.Context(), path, newLabel, nil); !errors.Is(err, ErrRefused) {
				t.Errorf("%s is not refused: %+v, %v", path, r, err)
			}
		}
		for _, path := range []string{"/var/srv/data", "/srv/data", "/opt/app", "/home/core/vol", "/root/vol", "/tmp/vol"} {
			if r, err := Tree(t.Context(), path, newLabel, &Options{Advanced: Advanced{NoSync: true}}); err != nil || !r.Complete || r.Skipped != 0 {
				t.Errorf("%s: %+v, %v", path, r, err)
			}
		}
	})
	for p, label := range treetest.Read(t, filepath.Join(root, "var")) {
		inside := p == "srv/data" || p == "srv/data/f" || p == "opt/app" || filepath.Base(p) == "vol"
		if inside != (label == newLabel) {
			t.Errorf("/var/%s has %q", p, label)
		}
	}
}

// TestRefusedAnew: what was resolved for an earlier call is not relied on when one
// of the places is another since, or what a link leads to.
func TestRefusedAnew(t *testing.T) {
	dir := on(t, "tmpfs")
	a, b, link, over := mkdir(t, dir, "a/home"), mkdir(t, dir, "b/home"), filepath.Join(dir, "link"), on(t, "tmpfs")
	refused := func(want bool, path string) {
		t.Helper()
		if _, err := Check(t.Context(), path, newLabel, nil); errors.Is(err, ErrRefused) != want {
			t.Errorf("%s: refused %t: %v", path, !want, err)
		}
	}
	lead := func(to string) {
		t.Helper()
		if err := errors.Join(os.RemoveAll(link), os.Symlink(to, link)); err != nil {
			t.Fatal(err)
		}
	}
	lead("a/../link2")
	if err := os.Symlink("a", link+"2"); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", filepath.Join(link, "home"))
	refused(true, a)
	refused(false, b)
	lead("b")
	refused(true, b)
	refused(false, a)
	lead("link2")
	refused(true, a)
	if err := errors.Join(os.Remove(link+"2"), os.Symlink("b", link+"2")); err != nil {
		t.Fatal(err)
	}
	refused(true, b)
	refused(false, a)
	if err := errors.Join(os.Rename(b, b+"2"), os.Rename(a, b)); err != nil { // as mv does it
		t.Fatal(err)
	}
	refused(true, b)
	refused(false, b+"2")
	refused(false, over)
	bind(t, over, b)
	refused(true, over)
	t.Setenv("HOME", b+"2")
	refused(true, b+"2")
	refused(false, over)
}
