// SPDX-License-Identifier: Apache-2.0

package mounts

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fastlabel/fastlabel/internal/mountinfo"
	"github.com/fastlabel/fastlabel/internal/run"
	"github.com/fastlabel/fastlabel/internal/sys"
	"github.com/fastlabel/fastlabel/test/treetest"
)

// asks is what a run does first.
func (k *kept) asks(t *testing.T) map[ID]Refused {
	t.Helper()
	o, event, err := k.enter(Seen{})
	treetest.Must(t, err)
	defer k.leave(o)
	return k.places.now(event, new(run.Activity))
}

func idAt(t *testing.T, path string) ID {
	t.Helper()
	st, e := sys.Statx(sys.AtFdcwd, sys.Cname(path))
	if e != 0 {
		t.Fatal(path, e)
	}
	return IDOf(st)
}

// TestPlacesKept: the places are not looked at again before a second has passed, or
// something was mounted; what is mounted over one is refused at once.
func TestPlacesKept(t *testing.T) {
	treetest.Need(t, "root", "tmpfs")
	home := t.TempDir()
	t.Setenv("HOME", home)
	synctest.Test(t, func(t *testing.T) {
		k := new(kept)
		same := func() bool { // as the call before
			t.Helper()
			found := k.asks(t)
			_, is := found[ID{}]
			found[ID{}] = Refused{}
			return is
		}
		same()
		defer k.now.close()
		fds := k.now
		for range 100 {
			if !same() {
				t.Fatal("the places are looked at twice in a second")
			}
		}
		time.Sleep(again)
		if same() || !same() || k.now != fds {
			t.Error("the places are not looked at once a second, or the descriptors are others")
		}
		mounted(t, home)
		if _, is := k.asks(t)[idAt(t, home)]; !is {
			t.Error("what was mounted over the home is not refused")
		}
	})
}

// TestPlacesAnew: a place that is another since, or a link that leads elsewhere, is
// noticed within a second; another home at once.
func TestPlacesAnew(t *testing.T) {
	dir := t.TempDir()
	a, b, link := filepath.Join(dir, "a/home"), filepath.Join(dir, "b/home"), filepath.Join(dir, "link")
	mkdir(t, a)
	mkdir(t, b)
	lead := func(link, to string) {
		t.Helper()
		treetest.Must(t, os.RemoveAll(link), os.Symlink(to, link))
	}
	lead(link, "a/../link2")
	lead(link+"2", "a")
	lead(filepath.Join(dir, "loop"), "loop")
	t.Setenv("HOME", filepath.Join(link, "home"))
	synctest.Test(t, func(t *testing.T) {
		k := new(kept)
		refused := func(want bool, path string) {
			t.Helper()
			if _, is := k.asks(t)[idAt(t, path)]; is != want {
				t.Errorf("%s: refused %t", path, is)
			}
		}
		only := func(yes, no string) {
			t.Helper()
			time.Sleep(again)
			refused(true, yes)
			refused(false, no)
		}
		only(a, b)
		defer func() { k.now.close() }()
		refused(true, link)
		refused(true, link+"2")
		refused(true, dir)
		lead(link, "b")
		only(b, a)
		lead(link, "link2")
		only(a, b)
		lead(link+"2", "b")
		only(b, a)
		treetest.Must(t, os.Rename(b, b+"2"), os.Rename(a, b)) // as mv does it
		only(b, b+"2")
		for _, home := range []string{b + "2", b, filepath.Join(dir, "none"), filepath.Join(dir, "loop/home"), ".", ""} {
			t.Setenv("HOME", home)
			_, err := os.Stat(home)
			there := err == nil && filepath.IsAbs(home)
			if _, is := k.asks(t)[idAt(t, b+"2")]; is != (home == b+"2") {
				t.Errorf("HOME=%s: %s is refused: %t", home, b+"2", is)
			}
			if there {
				refused(true, home)
			}
		}
	})
}

// TestTableKept: the table is read again when something was mounted and, where anything
// is mounted in the root's mount, each time: a directory may have been renamed.
func TestTableKept(t *testing.T) {
	treetest.Need(t, "root", "tmpfs")
	top := t.TempDir()
	mounted(t, top)
	more := func(t *testing.T, at string) { // which goes with top
		t.Helper()
		treetest.Must(t, unix.Mount("test", at, "tmpfs", 0, ""))
	}
	root := filepath.Join(top, "volume")
	mkdir(t, filepath.Join(root, "x"))
	more(t, root)
	mkdir(t, filepath.Join(root, "x"))
	learn := func(path string, beneath int, read bool) {
		t.Helper()
		m := learned(t, path)
		defer m.Close()
		p := m.proc
		if n := len(mountinfo.Beneath(p.Mounts, m.Real)); n != beneath || read != (p.Mounts != nil) {
			t.Errorf("%d mounts beneath %s, want %d; the table was read: %t", n, path, beneath, !read)
		}
		if _, kept := process.look(p.shared); read && &kept[0] != &p.Mounts[0] {
			t.Error("the table just read is not kept")
		}
	}
	learn(root, 0, true)
	learn(root, 0, false)
	mkdir(t, filepath.Join(root, "d/m"))
	more(t, filepath.Join(root, "d/m"))
	learn(root, 1, true)
	learn(root, 1, true)
	learn(filepath.Join(root, "x"), 0, true)
	treetest.Must(t, os.Rename(filepath.Join(root, "d"), filepath.Join(root, "x/d")))
	learn(filepath.Join(root, "x"), 1, true)

	// Two directories change their names, each with a mount: only one has a mount in it.
	for _, name := range []string{"a", "b"} {
		mkdir(t, filepath.Join(top, name, "m"))
		more(t, filepath.Join(top, name, "m"))
		mkdir(t, filepath.Join(top, name, "m/r/s"))
	}
	more(t, filepath.Join(top, "a/m/r/s"))
	learn(filepath.Join(top, "a/m/r"), 1, true)
	for _, names := range [][2]string{{"a", "c"}, {"b", "a"}} {
		treetest.Must(t, os.Rename(filepath.Join(top, names[0]), filepath.Join(top, names[1])))
	}
	learn(filepath.Join(top, "a/m/r"), 0, false)
	learn(filepath.Join(top, "c/m/r"), 1, true)
}

// TestProcKept: the descriptors of /proc are opened anew for another root directory or
// another /proc, and closed when their last run has ended. What is mounted over them is
// not believed.
func TestProcKept(t *testing.T) {
	treetest.Need(t, "root", "tmpfs", "plain") // no policy lets a file be mounted in /proc
	k := new(kept)
	open := func(o *opened) bool {
		_, e := sys.FSType(o.self)
		return e != syscall.EBADF
	}
	first, _, err := k.enter(Seen{})
	treetest.Must(t, err)
	k.now.root.id.Ino++ // as after chroot
	second, _, err := k.enter(Seen{})
	if err != nil || second == first || !open(first) {
		t.Errorf("another root directory: the same descriptors %t, or those of the run before are closed: %v", second == first, err)
	}
	k.leave(first)
	k.leave(second)
	if open(first) || !open(second) {
		t.Error("what no run needs is open, or what the next one needs is closed")
	}
	file := filepath.Join(t.TempDir(), "f")
	treetest.Must(t, os.WriteFile(file, nil, 0o600))
	treetest.Must(t, unix.Mount(file, "/proc/self/mountinfo", "", unix.MS_BIND, ""))
	if _, err := openProc(Seen{}); err == nil {
		t.Error("a file over the table of mounts is believed")
	}
	treetest.Must(t, unix.Unmount("/proc/self/mountinfo", unix.MNT_DETACH))
	mounted(t, "/proc/self/fd")
	if _, _, err := k.enter(Seen{}); err == nil || k.now != nil {
		t.Error("no proc filesystem, and it is believed")
	}
}
