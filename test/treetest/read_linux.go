// SPDX-License-Identifier: Apache-2.0

package treetest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// What Read gives for an entry without a label. Neither can be a context.
const (
	None        = "-" // there is none
	Unsupported = "!" // the filesystem has none
)

// Item is what List finds of an entry.
type Item struct {
	Type  Kind
	Label string // as Shown, or None, or Unsupported
	Dev   uint64
	Ino   uint64
	Ctime int64 // in nanoseconds
}

// Counts are numbers of entries: all of them, and the directories.
type Counts struct{ All, Dirs int64 }

// List reads root and everything beneath it, mounts included and links not
// followed, by descriptors and in no way that Label or the engine uses. The
// keys are paths below root; root is ".".
func List(t testing.TB, root string) map[string]Item {
	t.Helper()
	out := map[string]Item{}
	if err := listInto(out, root, ""); err != nil {
		t.Fatalf("list %s: %v", root, err)
	}
	return out
}

// Read gives the label of each entry that List finds, a trailing NUL taken
// off: compare with Diff.
func Read(t testing.TB, root string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for p, it := range List(t, root) {
		out[p] = trim(it.Label)
	}
	return out
}

// Count counts what List finds.
func Count(t testing.TB, root string) Counts {
	t.Helper()
	var n Counts
	for _, it := range List(t, root) {
		n.All++
		if it.Type == Dir {
			n.Dirs++
		}
	}
	return n
}

// Set gives the entry at p below root a label, or takes it away if label is
// None. The path may pass PATH_MAX; a link is labelled itself.
func Set(t testing.TB, root, p, label string) {
	t.Helper()
	c := &cursor{root: root}
	defer c.close()
	parent, err := c.enter(path.Dir(p))
	if err != nil {
		t.Fatal(err)
	}
	at := fmt.Sprintf("/proc/self/fd/%d/%s", parent, path.Base(p))
	if label == None {
		err = unix.Lremovexattr(at, Attr)
	} else {
		err = unix.Lsetxattr(at, Attr, []byte(label), 0)
	}
	if err != nil {
		t.Fatalf("label of %s: %v", short(p), err)
	}
}

// Snapshot records what must not change: each path itself and, for a path
// that ends in "/...", everything beneath it too. The keys are whole paths.
// A directory's ctime moves when anyone makes an entry in it.
func Snapshot(t testing.TB, paths ...string) map[string]Item {
	t.Helper()
	out := map[string]Item{}
	for _, p := range paths {
		p, beneath := strings.CutSuffix(p, "/...")
		var err error
		if beneath {
			err = listInto(out, p, p)
		} else {
			out[p], _, err = item(unix.AT_FDCWD, p, p)
		}
		if err != nil {
			t.Fatalf("snapshot of %s: %v", p, err)
		}
	}
	return out
}

// listInto lists root under keys that begin with prefix; "" makes them
// relative.
func listInto(out map[string]Item, root, prefix string) error {
	it, dir, err := item(unix.AT_FDCWD, root, root)
	if err != nil {
		return err
	}
	key := prefix
	if key == "" {
		key = "."
	}
	out[key] = it
	if !dir {
		return nil
	}
	return listDir(out, unix.AT_FDCWD, root, prefix)
}

// listDir lists the directory name in parent, whose own key is there already.
// It holds one descriptor a level.
func listDir(out map[string]Item, parent int, name, prefix string) error {
	fd, err := unix.Openat(parent, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return &fs.PathError{Op: "openat", Path: prefix + "/" + name, Err: err}
	}
	f := os.NewFile(uintptr(fd), name)
	defer func() { _ = f.Close() }()
	names, err := f.Readdirnames(-1)
	if err != nil {
		return err
	}
	for _, name := range names {
		key := name
		if prefix != "" {
			key = strings.TrimSuffix(prefix, "/") + "/" + name
		}
		it, dir, err := item(fd, name, fmt.Sprintf("/proc/self/fd/%d/%s", fd, name))
		if err != nil {
			return err
		}
		out[key] = it
		if dir {
			if err := listDir(out, fd, name, key); err != nil {
				return err
			}
		}
	}
	return nil
}

// item reads one entry by descriptor and name; at is the same for calls that
// take a path only.
func item(parent int, name, at string) (it Item, dir bool, err error) {
	var st unix.Stat_t
	if err := unix.Fstatat(parent, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return it, false, &fs.PathError{Op: "fstatat", Path: at, Err: err}
	}
	it = Item{Type: typeOf(st.Mode), Dev: uint64(st.Dev), Ino: st.Ino, Ctime: st.Ctim.Nano()}
	it.Label, err = attr(at)
	return it, it.Type == Dir, err
}

// Shown is a label that was read, without the NUL that SELinux puts behind each.
// Where SELinux is off it is what was stored, to the byte.
func Shown(value []byte) string {
	if Policed() {
		return trim(string(value))
	}
	return string(value)
}

// maxAttr is XATTR_SIZE_MAX in linux/limits.h.
const maxAttr = 65536

// attr reads the label at a short path.
func attr(at string) (string, error) {
	for size := 256; ; size = maxAttr {
		buf := make([]byte, size)
		n, err := unix.Lgetxattr(at, Attr, buf)
		switch {
		case err == nil:
			return Shown(buf[:n]), nil
		case errors.Is(err, unix.ENODATA):
			return None, nil
		case errors.Is(err, unix.ENOTSUP):
			return Unsupported, nil
		case errors.Is(err, unix.ERANGE) && size < maxAttr:
		default:
			return "", &fs.PathError{Op: "lgetxattr", Path: at, Err: err}
		}
	}
}

func typeOf(mode uint32) Kind {
	switch mode & unix.S_IFMT {
	case unix.S_IFDIR:
		return Dir
	case unix.S_IFREG:
		return File
	case unix.S_IFLNK:
		return Link
	case unix.S_IFIFO:
		return Fifo
	case unix.S_IFSOCK:
		return Socket
	case unix.S_IFCHR:
		return Char
	}
	return Block
}
