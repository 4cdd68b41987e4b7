// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/fastlabel/fastlabel/relabel"
	"github.com/fastlabel/fastlabel/test/treetest"
)

// By the table of mounts: whether all that is walked is on one filesystem.
func TestHoldsMounts(t *testing.T) {
	const table = `20 1 8:1 / / rw - ext4 /dev/sda1 rw
21 20 8:2 / /srv\040v rw - xfs /dev/sdb rw
22 20 8:3 / /srv rw - ext4 /dev/sdc rw
23 22 8:3 /part /srv/part rw - ext4 /dev/sdc rw
`
	for path, want := range map[string]bool{"/": true, "/srv": true, "/srv v": false, "/srv/part": false, "/srv/par": false, "/srv v/dir": false} {
		if got := holdsMounts(table, path); got != want {
			t.Errorf("%s: %t", path, got)
		}
	}
}

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
			n := inodesOf(path, &settings{})
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
		if n, a, x := inodesOf(dir, &settings{}), inodesOf(filepath.Join(dir, "a"), &settings{}), inodesOf(dir, &settings{xdev: true}); n != 0 || (a > 0) != c.known || (x > 0) != c.known {
			t.Errorf("%s: beside a mount at most %d, beside that %d, with -x %d", c.fs, n, a, x)
		}
	}
	if n := inodesOf("nothere", &settings{}); n != 0 {
		t.Errorf("what is not there has %d entries", n)
	}
}

// A real run is told of by the inodes in use on its filesystem, the next one by what
// the first has met, also when that one's mark is off.
func TestProgressReal(t *testing.T) {
	treetest.Need(t, "root")
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	dir := treetest.Fresh(t, "ext4")
	treetest.Build(t, dir, treetest.Text(t, "dir a/b/c\nfile a/f%03d x100\n"))
	all := treetest.Count(t, dir).All
	const reserved = 9 // of the ten inodes that ext4 keeps one is the root's
	for _, c := range []struct {
		level, want string
	}{
		{"s0:c1", fmt.Sprintf(`"total":%d,"total_from":"inodes","percent":`, all+reserved)},
		{"s0:c2", fmt.Sprintf(`"total":%d,"total_from":"last_run","percent":`, all)},
	} {
		asked, told, ended := make(chan os.Signal), make(chan struct{}), make(chan struct{})
		r, w := io.Pipe()
		a := real()
		a.asked = asked
		a.tree = func(ctx context.Context, root, label string, o relabel.Options) (relabel.Report, error) {
			o.Throttle = func(context.Context, int) { <-told } // until something was said of it
			return relabel.Tree(ctx, root, label, o)
		}
		ask := func() {
			select {
			case asked <- syscall.SIGUSR1:
			case <-ended:
			}
		}
		var line string
		go ask()
		go func() {
			lines := bufio.NewScanner(r)
			for (!strings.Contains(line, "total_from") || strings.Contains(line, `"seen":0,`)) && lines.Scan() {
				line = lines.Text()
				ask()
			}
			close(told)
			_, _ = io.Copy(io.Discard, r)
		}()
		if code := a.run(t.Context(), nil, w, io.Discard, []string{"--json", "-T2", "-l", c.level, dir}); code != exitDone {
			t.Errorf("%s: exit %d", c.level, code)
		}
		close(ended)
		w.Close()
		if <-told; !strings.Contains(line, c.want) {
			t.Errorf("%s: %s\nnot %s", c.level, line, c.want)
		}
	}
}
