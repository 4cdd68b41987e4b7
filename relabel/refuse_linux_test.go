// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"errors"
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
			if r, err := Tree(t.Context(), path, newLabel, nil); err != nil || !r.Complete || r.Skipped != 0 {
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

// TestRefusedAnew: what was found for an earlier call is not relied on when something is
// mounted over one of the places since, or another home is named. (TestPlacesAnew has what
// is noticed within a second.)
func TestRefusedAnew(t *testing.T) {
	dir := on(t, "tmpfs")
	home, other, over := mkdir(t, dir, "home"), mkdir(t, dir, "other"), on(t, "tmpfs")
	refused := func(want bool, path string) {
		t.Helper()
		if _, err := Check(t.Context(), path, newLabel, nil); errors.Is(err, ErrRefused) != want {
			t.Errorf("%s: refused %t: %v", path, !want, err)
		}
	}
	t.Setenv("HOME", home)
	refused(true, home)
	refused(false, over)
	bind(t, over, home)
	refused(true, over)
	t.Setenv("HOME", other)
	refused(true, other)
	refused(false, over)
}
