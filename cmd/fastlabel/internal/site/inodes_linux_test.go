// SPDX-License-Identifier: Apache-2.0

package site

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/fastlabel/fastlabel/test/treetest"
)

// The inodes in use of a real filesystem are no less than the entries beneath a
// PATH, and known only where the filesystem counts them and holds all that is walked.
func TestInodesOf(t *testing.T) {
	treetest.Need(t, "root")
	for _, c := range []struct {
		fs    string
		known bool
	}{{"ext4", true}, {"xfs", true}, {"tmpfs", true}, {"btrfs", false}} {
		dir := treetest.Fresh(t, c.fs)
		treetest.Build(t, dir, treetest.Text(t, "dir a/b/c\nfile a/f%03d x100\n"))
		all := treetest.Count(t, dir).All
		for _, path := range []string{dir, filepath.Join(dir, "a")} {
			n := InodesOf(path, false)
			if (n > 0) != c.known || c.known && (n < all || n > all+1000) {
				t.Errorf("%s: %s: %d entries, and at most %d", c.fs, path, all, n)
			}
		}
		if err := os.Mkdir(filepath.Join(dir, "on"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Mount(dir, filepath.Join(dir, "on"), "", syscall.MS_BIND, ""); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = syscall.Unmount(filepath.Join(dir, "on"), 0) })
		if n, a, x := InodesOf(dir, false), InodesOf(filepath.Join(dir, "a"), false), InodesOf(dir, true); n != 0 || (a > 0) != c.known || (x > 0) != c.known {
			t.Errorf("%s: beside a mount at most %d, beside that %d, with -x %d", c.fs, n, a, x)
		}
	}
	if n := InodesOf("nothere", false); n != 0 {
		t.Errorf("what is not there has %d entries", n)
	}
}
