// SPDX-License-Identifier: Apache-2.0

package site

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/fastlabel/fastlabel/internal/mountinfo"
	"github.com/fastlabel/fastlabel/test/treetest"
)

// The inodes in use of a real filesystem are no less than the entries beneath its top, and
// given only for that, where the filesystem counts them and holds all that is walked.
func TestInodesOf(t *testing.T) {
	treetest.Need(t, "root")
	for _, c := range []struct {
		fs    string
		known bool
	}{{"ext4", true}, {"xfs", true}, {"tmpfs", true}, {"btrfs", false}} {
		dir := treetest.Fresh(t, c.fs)
		treetest.Build(t, dir, treetest.Text(t, "dir a/b/c\nfile a/f%03d x100\n"))
		all := treetest.Count(t, dir).All
		if n := InodesOf(dir, false); (n > 0) != c.known || c.known && (n < all || n > all+1000) {
			t.Errorf("%s: %d entries, and at most %d", c.fs, all, n)
		}
		if n := InodesOf(filepath.Join(dir, "a"), false); n != 0 {
			t.Errorf("%s: a part has at most %d", c.fs, n)
		}
		treetest.Must(t, os.Mkdir(filepath.Join(dir, "on"), 0o755))
		at := filepath.Join(dir, "on")
		treetest.Must(t, syscall.Mount(filepath.Join(dir, "a"), at, "", syscall.MS_BIND, ""))
		t.Cleanup(func() { _ = syscall.Unmount(at, 0) })
		if n, part, x := InodesOf(dir, false), InodesOf(at, false), InodesOf(dir, true); n != 0 || part != 0 || (x > 0) != c.known {
			t.Errorf("%s: with a mount beneath at most %d, of a part that is mounted %d, with -x %d", c.fs, n, part, x)
		}
	}
	if n := InodesOf("nothere", false); n != 0 {
		t.Errorf("what is not there has %d entries", n)
	}
}

// Which served filesystem a path names is found without asking any, and whether
// there is one.
func TestServerOf(t *testing.T) {
	group := func(point, fstype, path string) (found []string) {
		_, found = Mounts{{Point: "/", FSType: "ext4"}, {Point: point, FSType: fstype}, {Point: "/tmp/nfs/local", FSType: "xfs"}}.Part([]string{path})
		return found
	}
	t.Chdir("/tmp")
	for path, want := range map[string]bool{
		"/tmp": false, "/tmp/nfs": true, "/tmp/nfs/": true, "/tmp/./nfs/../nfs//deep/below": true, "nfs/x": true, "../tmp/nfs": true,
		"/tmp/nfs/local": true, // the way leads through it
		"other":          false, "/tmp/nfs/..": false, "/tmp/nfss": false, "/": false,
	} {
		if got := group("/tmp/nfs", "nfs4", path); (len(got) > 0) != want {
			t.Errorf("%s: %q", path, got)
		}
	}
	if got := group("/", "fuseblk", "x"); len(got) == 0 {
		t.Error("the top of all")
	}
	if got := group("/proc/sys/fs/binfmt_misc", "autofs", "/proc/sys/fs/binfmt_misc/x"); len(got) > 0 {
		t.Errorf("the kernel's own automount: %q", got)
	}
	for fstype, want := range map[string]bool{
		"nfs": true, "cifs": true, "fuse": true, "fuse.sshfs": true, "autofs": true, "ext4": false, "tmpfs": false, "overlay": false, "fusectl": false,
	} {
		if served(mountinfo.Mount{Point: "/mnt", FSType: fstype}) != want {
			t.Errorf("%s: %v", fstype, !want)
		}
	}
}

func TestMain(m *testing.M) { os.Exit(treetest.Main(m)) }
