// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/fastlabel/fastlabel/internal/commit"
	"github.com/fastlabel/fastlabel/internal/sys"
	"github.com/fastlabel/fastlabel/test/treetest"
)

// on gives a fresh directory on a filesystem of that kind.
func on(t testing.TB, kind string) string {
	t.Helper()
	treetest.Need(t, "root", kind)
	for _, f := range treetest.Filesystems(t) {
		if f.Name == kind {
			return f.Dir(t)
		}
	}
	t.Fatalf("no %s", kind)
	return ""
}

// grow makes the tree in a directory of its own beneath dir.
func grow(t *testing.T, dir, text string) string {
	t.Helper()
	root := filepath.Join(dir, "root")
	treetest.Build(t, root, treetest.Text(t, text))
	return root
}

// bind mounts what is at from over the existing at, until the test ends.
func bind(t *testing.T, from, at string) {
	t.Helper()
	treetest.Must(t, unix.Mount(from, at, "", unix.MS_BIND, ""))
	t.Cleanup(func() {
		treetest.Check(t, unix.Unmount(at, unix.MNT_DETACH))
	})
}

// unclaim takes away the claim that an interrupted run has left, for tests with many
// runs: each waits a second for a run whose claim it finds.
func unclaim(t *testing.T, root string) {
	t.Helper()
	if err := unix.Removexattr(root, commit.ClaimName); err != nil && !errors.Is(err, unix.ENODATA) {
		t.Fatal(err)
	}
}

func mkdir(t *testing.T, elem ...string) string {
	t.Helper()
	path := filepath.Join(elem...)
	treetest.Must(t, os.MkdirAll(path, 0o755))
	return path
}

func writeFile(t *testing.T, path string) {
	t.Helper()
	treetest.Must(t, os.WriteFile(path, nil, 0o600))
}

// TestRefusedRoots names what is never relabelled in ways that a comparison of
// strings misses. The context is at its end before it begins: an engine that
// did not refuse would at least not relabel the machine. What is refused else is in the
// table of TestDropinContract.
func TestRefusedRoots(t *testing.T) {
	dir := on(t, "tmpfs")
	slash, etc := mkdir(t, dir, "slash"), mkdir(t, dir, "etc")
	bind(t, "/", slash)
	bind(t, "/etc", etc)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for path, refused := range map[string]bool{
		"/": true, "//etc": true, "/./etc/": true, "/var/lib/../lib": true, "/tmp": true, "/proc/self/root/": true,
		slash: true, etc: true, dir: false,
	} {
		t.Run(path, func(t *testing.T) {
			if path == "/tmp" { // one of the test's own: an entry that another process makes moves its ctime
				treetest.Must(t, unix.Mount("test", path, "tmpfs", 0, ""))
				t.Cleanup(func() { treetest.Check(t, unix.Unmount(path, 0)) })
			}
			before := treetest.Snapshot(t, path)
			r, err := Tree(ended, path, newLabel, nil)
			if is := errors.Is(err, ErrRefused) && pathOf(err) == path && r.Seen == 0; is != refused || r.Complete {
				t.Errorf("%+v, %v", r, err)
			}
			if d := treetest.Diff(before, treetest.Snapshot(t, path)); refused && len(d) > 0 {
				t.Errorf("it was refused, and touched:\n%s", lines(d))
			}
		})
	}
}

// TestMissingRoots: a root that is not there, or cannot have a label, is an error of its path.
func TestMissingRoots(t *testing.T) {
	dir := on(t, "tmpfs")
	t.Chdir(dir)
	for range 22 { // deeper than the kernel reports a path
		name := mkdir(t, strings.Repeat("d", 200))
		writeFile(t, name+"/f")
		t.Chdir(name)
	}
	dot, err := os.Open(".")
	treetest.Must(t, err)
	defer dot.Close()
	_, byPath := sys.Statmount(int(dot.Fd())) // before Linux 6.8 what is mounted beneath it is found by its path
	r, err := Tree(t.Context(), ".", newLabel, nil)
	if byPath == 0 && (err != nil || !r.Complete || r.Written != 2) || byPath != 0 && !errors.Is(err, syscall.ENAMETOOLONG) {
		t.Errorf("a deep root without mounts: %+v, %v", r, err)
	}
	rules := Rules{Contexts: contextsFor(t, dir, "@(/.*)? "+usrLabel+"\n")}
	if r, err := Apply(t.Context(), ".", rules, nil); !errors.Is(err, syscall.ENAMETOOLONG) {
		t.Errorf("a deep root by path: %+v, %v", r, err)
	}
	treetest.Must(t, os.Symlink("nowhere", filepath.Join(dir, "link")), os.Mkdir("m", 0o700), unix.Mount("m", "m", "tmpfs", 0, ""))
	defer func() {
		treetest.Check(t, unix.Unmount("m", 0)) // whose path is too long to be unmounted later
	}()
	bare := on(t, "tmpfs")
	mounted(t, "ramfs", bare, treetest.Bare("ramfs"))
	writeFile(t, filepath.Join(bare, "f"))
	for path, want := range map[string]error{
		"": syscall.ENOENT, filepath.Join(dir, "none"): syscall.ENOENT, filepath.Join(dir, "link") + "/": syscall.ENOENT,
		dir + "\x00": syscall.EINVAL, ".": syscall.ENAMETOOLONG,
		bare: syscall.ENOTSUP, filepath.Join(bare, "f"): syscall.ENOTSUP,
	} {
		_, err := Tree(t.Context(), path, newLabel, nil)
		_, alone := isLabelled(path, newLabel, SkipRoot)
		_, shared := new(Group).Tree(t.Context(), path, newLabel, SkipNone)
		for who, err := range map[string]error{"Tree": err, "Labelled": alone, "Group.Tree": shared} {
			if path == "." && who == "Labelled" {
				continue // what is beneath the root is not looked at
			}
			if !errors.As(err, new(*fs.PathError)) || !errors.Is(err, want) {
				t.Errorf("%s %q: %v", who, path, err)
			}
		}
	}
}

// TestSkip tells what Skip trusts, and that Labelled is of the same mind.
func TestSkip(t *testing.T) {
	for _, c := range []struct {
		root, top, deep string
		skip            Skip
		trusted         bool
	}{
		{newLabel, newLabel, newLabel, SkipNone, false},
		{newLabel, oldLabel, oldLabel, SkipTop + 1, false}, // none of the constants
		{newLabel, oldLabel, oldLabel, SkipRoot, true},
		{newLabel + `\x00`, newLabel, newLabel, SkipRoot, true},
		{oldLabel, newLabel, newLabel, SkipRoot, false},
		{newLabel, newLabel, oldLabel, SkipTop, true},
		{newLabel, oldLabel, newLabel, SkipTop, false},
		{oldLabel, newLabel, newLabel, SkipTop, false},
	} {
		root := grow(t, on(t, "tmpfs"), fmt.Sprintf(
			"dir . label=\"%s\"\ndir d label=%s\nfile d/f label=%s\nfile g label=%s\n", c.root, c.top, c.deep, newLabel))
		if c.skip == SkipRoot || c.skip == SkipTop {
			ok, err := isLabelled(root, newLabel, c.skip)
			if err != nil || ok != c.trusted {
				t.Errorf("%+v: Labelled says %t, %v", c, ok, err)
			}
		}
		r, err := Tree(t.Context(), root, newLabel, &Options{Skip: c.skip})
		if err != nil || r.Trusted != c.trusted || !r.Complete {
			t.Errorf("%+v: %+v, %v", c, r, err)
		}
		adds(t, r)
		if left := treetest.Read(t, root)["d/f"] != newLabel; left != (c.trusted && c.deep != newLabel) {
			t.Errorf("%+v: the deep file is left: %t", c, left)
		}
	}
}

// chroot chroots the process into root while call runs.
func chroot(t *testing.T, root string, call func()) {
	t.Helper()
	here, err := syscall.Open("/", syscall.O_RDONLY|syscall.O_DIRECTORY|syscall.O_CLOEXEC, 0)
	treetest.Must(t, err)
	defer syscall.Close(here)
	cwd, err := syscall.Open(".", syscall.O_RDONLY|syscall.O_DIRECTORY|syscall.O_CLOEXEC, 0)
	treetest.Must(t, err)
	defer syscall.Close(cwd)
	defer func() {
		if err := errors.Join(syscall.Fchdir(here), syscall.Chroot("."), syscall.Fchdir(cwd)); err != nil {
			panic(err) // what follows would be done in the wrong place
		}
	}()
	treetest.Must(t, syscall.Chroot(root), syscall.Chdir("/"))
	call()
}

// TestRefusedLinks: on an ostree system most of the places that are never
// relabelled are links into /var. What they lead to is refused as they are; what
// lies in it is not.
func TestRefusedLinks(t *testing.T) {
	treetest.Need(t, "root")
	root := on(t, "tmpfs")
	mounted(t, "tmpfs", root, "")
	treetest.Build(t, root, treetest.Text(t, "default label="+oldLabel+"\ndir .\ndir proc\ndir run\n"+
		"file var/srv/data/f\ndir var/home/core/vol\ndir var/roothome/vol\ndir sysroot/tmp/vol\n"+
		"link srv var/srv\nlink home var/home\nlink root var/roothome\nlink tmp sysroot/tmp\n"))
	mounted(t, "proc", filepath.Join(root, "proc"), "")
	t.Setenv("HOME", "/home/core")
	chroot(t, root, func() {
		for _, path := range []string{
			"/srv", "/srv/", "/var/srv", "/home", "/home/", "/var/home", "/home/core", "/var/home/core",
			"/root", "/var/roothome", "/tmp/", "/sysroot/tmp", "/sysroot", "/var", "/",
		} {
			if r, err := Verify(t.Context(), path, newLabel, nil); !errors.Is(err, ErrRefused) {
				t.Errorf("%s is not refused: %+v, %v", path, r, err)
			}
		}
		for _, path := range []string{"/var/srv/data", "/srv/data", "/home/core/vol", "/root/vol", "/tmp/vol"} {
			if r, err := Tree(t.Context(), path, newLabel, nil); err != nil || !r.Complete || r.Skipped != 0 {
				t.Errorf("%s: %+v, %v", path, r, err)
			}
		}
	})
	for p, label := range treetest.Read(t, filepath.Join(root, "var")) {
		inside := p == "srv/data" || p == "srv/data/f" || filepath.Base(p) == "vol"
		if inside != (label == newLabel) {
			t.Errorf("/var/%s has %q", p, label)
		}
	}
}

// TestWithoutProc: in a chroot without /proc each function says so. A runtime must
// not take the volume for one that is gone, or that cannot have labels.
func TestWithoutProc(t *testing.T) {
	treetest.Need(t, "root")
	root := on(t, "tmpfs")
	grow(t, mkdir(t, root, "v"), plain)
	errs := make(map[string]error)
	chroot(t, root, func() {
		const vol = "/v"
		_, errs["Tree"] = Tree(t.Context(), vol, newLabel, nil)
		_, errs["Group"] = new(Group).Tree(t.Context(), vol, newLabel, SkipNone)
		_, errs["Labelled"] = isLabelled(vol, newLabel, SkipRoot)
		_, errs["Interrupted"] = isInterrupted(vol, newLabel)
		errs["Chcon"] = Chcon(vol, newLabel, true)
		errs["Chcon of one file"] = Chcon(vol+"/f00", newLabel, false)
	})
	for name, err := range errs {
		var at *fs.PathError
		if !errors.As(err, &at) || !strings.HasPrefix(at.Path, "/proc") || !strings.Contains(err.Error(), "no proc filesystem is mounted on /proc") {
			t.Errorf("%s: %v", name, err)
		}
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("%s: %v means something else", name, err)
		}
	}
	if n := len(bearing(t, filepath.Join(root, "v"), newLabel)); n != 0 {
		t.Errorf("%d entries are labelled", n)
	}
}
