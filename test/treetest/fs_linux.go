// SPDX-License-Identifier: Apache-2.0

package treetest

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// shared is a filesystem made once a process, for all its tests.
type shared struct {
	make func()
	dir  string
	err  error
}

// mkfs holds what makes each kind of filesystem, quietly, and the size of its
// sparse image: xfsprogs 6 refuses less than 300 MiB, and btrfs below 256 MiB
// mixes data and metadata, which is not what people run. 64 Ki inodes on ext4
// hold the largest tree several times; 4 KiB blocks, the ordinary size, are
// what a long label needs.
var mkfs = map[string]struct {
	mib  int64
	args []string
}{
	"ext4":  {256, []string{"mkfs.ext4", "-q", "-F", "-b", "4096", "-N", "65536"}},
	"xfs":   {300, []string{"mkfs.xfs", "-q", "-f"}},
	"btrfs": {256, []string{"mkfs.btrfs", "-q", "-f"}},
}

// FS is a filesystem that this machine can mount.
type FS struct {
	Name string // ext4, xfs, btrfs or tmpfs
	root string
}

// Filesystems lists those of ext4, xfs, btrfs and tmpfs that this machine can
// mount. One that it lacks is logged, or fails the test if it was promised.
func Filesystems(t testing.TB) []FS {
	t.Helper()
	var out []FS
	for _, name := range []string{"ext4", "xfs", "btrfs", "tmpfs"} {
		root, err := sharedFS(name)
		switch {
		case err == nil:
			out = append(out, FS{name, root})
		case Promised(name):
			t.Errorf("%s was promised (%s): %v", name, promiseEnv, err)
		default:
			t.Logf("without %s: %v", name, err)
		}
	}
	return out
}

// Dir makes a fresh directory on the filesystem. It goes at the end of the
// test with all beneath it, after mounts below it are detached.
func (f FS) Dir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp(f.root, "t-")
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := remove(dir); err != nil {
			t.Errorf("clean up: %v", err)
		}
	})
	return dir
}

// Each runs test once on each of ext4, xfs, btrfs and tmpfs, as a subtest of
// that name, with a fresh directory.
func Each(t *testing.T, test func(t *testing.T, dir string)) {
	t.Helper()
	for _, name := range []string{"ext4", "xfs", "btrfs", "tmpfs"} {
		t.Run(name, func(t *testing.T) {
			Need(t, name)
			root, err := sharedFS(name)
			if err != nil {
				t.Fatal(err)
			}
			test(t, FS{name, root}.Dir(t))
		})
	}
}

// Fresh makes a whole new filesystem for the test and gives its root, which
// is empty. It is unmounted at the end; the test fails if it is then in use.
func Fresh(t testing.TB, name string) string {
	t.Helper()
	Need(t, name)
	dir, err := mountNew(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unmount(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// sharedFS gives the root of the filesystem that the tests of the process
// share, and makes it if this is the first call.
func sharedFS(name string) (string, error) {
	k, ok := bench.kinds[name]
	if !ok && bench.kinds != nil {
		return "", fmt.Errorf("no filesystem %q here: ext4, xfs, btrfs or tmpfs", name)
	}
	if err := canMount(); err != nil {
		return "", err
	}
	k.make()
	return k.dir, k.err
}

func canMount() error {
	if bench.kinds == nil {
		return errNoMain
	}
	return bench.why
}

// mountNew makes a filesystem and mounts it in the scratch directory. The
// image has no name any more once it is mounted: its space is given back when
// the last mount goes.
func mountNew(kind string) (dir string, err error) {
	if dir, err = os.MkdirTemp(bench.scratch, kind+"-"); err != nil {
		return "", err
	}
	if kind == "tmpfs" {
		if err := unix.Mount("treetest", dir, "tmpfs", 0, "mode=0755"); err != nil {
			return "", &fs.PathError{Op: "mount", Path: dir, Err: err}
		}
		return dir, nil
	}
	how := mkfs[kind]
	image, err := os.CreateTemp("", "fastlabel-"+kind+"-*.img")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, image.Close(), os.Remove(image.Name())) }()
	if err := image.Truncate(how.mib << 20); err != nil {
		return "", err
	}
	if err := run(append(how.args, image.Name())...); err != nil {
		return "", err
	}
	if out, err := exec.Command("mount", "-o", "loop", image.Name(), dir).CombinedOutput(); err != nil {
		// Without the names, which differ: the reason is one.
		return "", fmt.Errorf("a file through a loop device: %s: %w", strings.Trim(string(out[bytes.LastIndex(out, []byte(": "))+1:]), " .\n"), err)
	}
	if err := os.Remove(filepath.Join(dir, "lost+found")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	return dir, nil
}

// unmount unmounts dir and what is mounted below it. A filesystem that is in
// use is detached and reported.
func unmount(dir string) error {
	if err := detachBelow(dir); err != nil {
		return err
	}
	// A child of another test holds, between fork and exec, all that was open when it was forked.
	err := error(unix.EBUSY)
	for end := time.Now().Add(Patience); err == unix.EBUSY && time.Now().Before(end); time.Sleep(time.Millisecond) {
		if err = unix.Unmount(dir, unix.UMOUNT_NOFOLLOW); err == nil {
			return os.Remove(dir)
		}
	}
	return errors.Join(fmt.Errorf("unmount %s, which something still holds: %w", dir, err),
		unix.Unmount(dir, unix.MNT_DETACH))
}

// run runs a command that should have nothing to say.
func run(args ...string) error {
	out, err := exec.Command(args[0], args[1:]...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}
