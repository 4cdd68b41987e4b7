// SPDX-License-Identifier: Apache-2.0

package treetest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
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
	if err := list(out, ".", root, true); err != nil {
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
	at, leave, err := place(root, p)
	Must(t, err)
	defer leave()
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
		if err := list(out, p, p, beneath); err != nil {
			t.Fatalf("snapshot of %s: %v", p, err)
		}
	}
	return out
}

// list lists the entry at a short path under a key, and with beneath what is in it: under
// key/name, of "." under the name. It holds one descriptor a level.
func list(out map[string]Item, key, at string, beneath bool) error {
	var st unix.Stat_t
	if err := unix.Lstat(at, &st); err != nil {
		return &fs.PathError{Op: "lstat", Path: key, Err: err}
	}
	it := Item{Dev: uint64(st.Dev), Ino: st.Ino, Ctime: st.Ctim.Nano()}
	for kind, mode := range modes {
		if st.Mode&unix.S_IFMT == mode {
			it.Type = kind
		}
	}
	var err error
	if it.Label, err = attr(at); err != nil {
		return err
	}
	out[key] = it
	if it.Type != Dir || !beneath {
		return nil
	}
	dir, err := os.OpenFile(at, unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	for _, name := range names {
		below := name
		if key != "." {
			below = strings.TrimSuffix(key, "/") + "/" + name
		}
		err = errors.Join(err, list(out, below, fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), name), true))
	}
	return err
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
