// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/fastlabel/fastlabel/relabel/internal/commit"
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
	if err := unix.Mount(from, at, "", unix.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(at, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
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
	if err := os.MkdirAll(path, 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestRefusedRoots names what is never relabelled in ways that a comparison of
// strings misses. The context is at its end before it begins: an engine that
// did not refuse would at least not relabel the machine.
func TestRefusedRoots(t *testing.T) {
	dir := on(t, "tmpfs")
	home := mkdir(t, dir, "a", "b", "home")
	sudo := mkdir(t, dir, "s", "sudo")
	slash, etc, other := mkdir(t, dir, "slash"), mkdir(t, dir, "etc"), mkdir(t, dir, "other")
	bind(t, "/", slash)
	bind(t, "/etc", etc)
	bind(t, home, other)
	passwd := filepath.Join(dir, "passwd")
	line := fmt.Sprintf("root:x:0:0::/root:/bin/sh\nsomebody:x:4321:4321::%s:/bin/sh\n", sudo)
	if err := os.WriteFile(passwd, []byte(line), 0o644); err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	refused := func(path string) bool {
		t.Helper()
		before := treetest.Snapshot(t, path)
		r, err := Tree(ended, path, newLabel, nil)
		if is := errors.Is(err, ErrRefused); !is {
			return false
		}
		var where *fs.PathError
		if !errors.As(err, &where) || where.Path != path || r.Seen != 0 || r.Complete {
			t.Errorf("%s: %+v, %v", path, r, err)
		}
		if d := treetest.Diff(before, treetest.Snapshot(t, path)); len(d) > 0 {
			t.Errorf("%s was refused, and touched:\n%s", path, lines(d))
		}
		return true
	}
	for _, path := range []string{home, filepath.Dir(home), sudo, other} {
		if refused(path) {
			t.Errorf("%s is refused before it is anyone's home", path)
		}
	}
	t.Setenv("HOME", home+"//")
	t.Setenv("SUDO_USER", "somebody")
	bind(t, passwd, "/etc/passwd")
	for _, path := range []string{
		"/", "//etc", "/./etc/", "/var/lib/../lib", "/tmp", "/proc/self/root/", slash, etc,
		home, home + "//", other, filepath.Dir(home), dir, sudo, filepath.Dir(sudo),
	} {
		if !refused(path) {
			t.Errorf("%s is not refused", path)
		}
	}
}

func TestAllowedRoots(t *testing.T) {
	treetest.Need(t, "root")
	below := mkdir(t, t.TempDir(), "volume")
	r, err := Tree(t.Context(), below, newLabel, nil)
	if err != nil || !r.Complete || r.Written != 1 {
		t.Errorf("below the temporary directory: %+v, %v", r, err)
	}
}

// TestSingleRoots labels roots that are no directories. None may be opened:
// for a FIFO that would be for ever.
func TestSingleRoots(t *testing.T) {
	root := grow(t, on(t, "tmpfs"), `
default label=`+oldLabel+`
file file
fifo fifo
socket socket
char char 1:3
block block 7:99
dir dir
file dir/in
link link dir
link dangling nowhere
`)
	for _, name := range []string{"file", "fifo", "socket", "char", "block", "link", "dangling"} {
		want := treetest.Read(t, root)
		want[name] = newLabel
		for _, written := range []int64{1, 0} {
			treetest.Returns(t, name, func() {
				r, err := Tree(t.Context(), filepath.Join(root, name), newLabel, nil)
				if err != nil || !r.Complete || r.Seen != 1 || r.Written != written || r.Right != 1-written {
					t.Errorf("%s: %+v, %v", name, r, err)
				}
			})
		}
		if d := treetest.Diff(want, treetest.Read(t, root)); len(d) > 0 {
			t.Errorf("%s:\n%s", name, lines(d))
		}
	}
	r, err := Tree(t.Context(), filepath.Join(root, "link")+"/", newLabel, nil)
	if err != nil || r.Written != 2 {
		t.Errorf("a link with a slash: %+v, %v", r, err)
	}
	if have := treetest.Read(t, root); have["dir"] != newLabel || have["dir/in"] != newLabel {
		t.Error("the directory behind the link is not labelled")
	}
}

func TestMissingRoots(t *testing.T) {
	dir := on(t, "tmpfs")
	if err := os.Symlink("nowhere", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]error{
		"": syscall.ENOENT, filepath.Join(dir, "none"): syscall.ENOENT, filepath.Join(dir, "link") + "/": syscall.ENOENT,
		dir + "\x00": syscall.EINVAL,
	} {
		_, err := Tree(t.Context(), path, newLabel, nil)
		_, alone := isLabelled(path, newLabel, TrustRoot)
		_, shared := new(Group).Tree(t.Context(), path, newLabel, TrustNothing)
		for who, err := range map[string]error{"Tree": err, "Labelled": alone, "Group.Tree": shared} {
			if !errors.As(err, new(*fs.PathError)) || !errors.Is(err, want) {
				t.Errorf("%s %q: %v", who, path, err)
			}
		}
	}
}

func TestUnlabelableRoot(t *testing.T) {
	dir := on(t, "tmpfs")
	if err := unix.Mount("test", dir, "ramfs", 0, treetest.Bare("ramfs")); err != nil {
		t.Fatal(err)
	}
	defer unix.Unmount(dir, unix.MNT_DETACH) // gone with the namespace
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{dir, file} {
		r, err := Tree(t.Context(), path, newLabel, nil)
		if !errors.Is(err, errors.ErrUnsupported) || !errors.Is(err, syscall.ENOTSUP) || r.Complete {
			t.Errorf("%s: %+v, %v", path, r, err)
		}
		if _, err := isLabelled(path, newLabel, TrustRoot); !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("Labelled %s: %v", path, err)
		}
	}
}

// TestSkip tells what Skip trusts, and that Labelled is of the same mind.
func TestSkip(t *testing.T) {
	for _, c := range []struct {
		root, top, deep string
		skip            Trust
		trusted         bool
	}{
		{newLabel, newLabel, newLabel, TrustNothing, false},
		{newLabel, oldLabel, oldLabel, TrustTop + 1, false}, // none of the constants
		{newLabel, oldLabel, oldLabel, TrustRoot, true},
		{newLabel + `\x00`, newLabel, newLabel, TrustRoot, true},
		{oldLabel, newLabel, newLabel, TrustRoot, false},
		{newLabel, newLabel, oldLabel, TrustTop, true},
		{newLabel, oldLabel, newLabel, TrustTop, false},
		{oldLabel, newLabel, newLabel, TrustTop, false},
	} {
		root := grow(t, on(t, "tmpfs"), fmt.Sprintf(
			"dir . label=\"%s\"\ndir d label=%s\nfile d/f label=%s\nfile g label=%s\n", c.root, c.top, c.deep, newLabel))
		if c.skip == TrustRoot || c.skip == TrustTop {
			ok, err := isLabelled(root, newLabel, c.skip)
			if err != nil || ok != c.trusted {
				t.Errorf("%+v: Labelled says %t, %v", c, ok, err)
			}
		}
		r, err := Tree(t.Context(), root, newLabel, &Options{Trust: c.skip})
		if err != nil || r.Trusted != c.trusted || !r.Complete {
			t.Errorf("%+v: %+v, %v", c, r, err)
		}
		adds(t, r)
		if left := treetest.Read(t, root)["d/f"] != newLabel; left != (c.trusted && c.deep != newLabel) {
			t.Errorf("%+v: the deep file is left: %t", c, left)
		}
	}
}
