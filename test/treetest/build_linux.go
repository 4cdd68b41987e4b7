// SPDX-License-Identifier: Apache-2.0

package treetest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// Attr is the attribute that holds the label.
const Attr = "security.selinux"

// Build makes the tree in dir, which is made if it is missing. Each entry is
// made relative to a descriptor of its directory, so paths may pass PATH_MAX.
// At the end of the test whatever is mounted below dir is detached, the last
// first. A tree with mounts needs Main.
func Build(t testing.TB, dir string, tr *Tree) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range tr.Entries {
		if e.Kind == Mount {
			Need(t, "root")
			t.Cleanup(func() {
				if err := detachBelow(dir); err != nil {
					t.Errorf("clean up mounts: %v", err)
				}
			})
			break
		}
	}
	c := &cursor{root: dir}
	defer c.close()
	var sealed []Entry
	for _, e := range tr.Entries {
		if err := c.make(e); err != nil {
			if errors.Is(err, unix.EINVAL) && Policed() {
				Need(t, "plain") // it is to have what is no context
			}
			t.Fatalf("%s:%d: build %s: %v", tr.Name, e.line, short(e.Path), err)
		}
		if e.ReadOnly {
			sealed = append(sealed, e)
		}
	}
	for _, e := range sealed {
		flags := uintptr(unix.MS_REMOUNT | unix.MS_RDONLY)
		if e.FS == "bind" {
			flags |= unix.MS_BIND
		}
		if err := unix.Mount("", filepath.Join(dir, e.Path), "", flags, ""); err != nil {
			t.Fatalf("%s:%d: turn %s read-only: %v", tr.Name, e.line, short(e.Path), err)
		}
	}
}

// cursor holds the directory that was used last: the next entry is mostly in
// it or below it.
type cursor struct {
	root string
	at   string // below root; "." is the root
	fd   int
	open bool
}

func (c *cursor) close() {
	if c.open {
		_ = unix.Close(c.fd) // an O_PATH descriptor has nothing to lose
		c.open = false
	}
}

// enter makes dir, a path below the root, the current one.
func (c *cursor) enter(dir string) (int, error) {
	if c.open && c.at == dir {
		return c.fd, nil
	}
	const flags = unix.O_PATH | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	rest, below := dir, false
	if c.open && c.at != "." {
		rest, below = strings.CutPrefix(dir, c.at+"/")
	}
	if !below {
		c.close()
		fd, err := unix.Open(c.root, flags&^unix.O_NOFOLLOW, 0)
		if err != nil {
			return -1, &fs.PathError{Op: "open", Path: c.root, Err: err}
		}
		c.fd, c.open, c.at = fd, true, "."
		rest = dir
	}
	if rest != "." {
		for name := range strings.SplitSeq(rest, "/") {
			fd, err := unix.Openat(c.fd, name, flags, 0)
			if err != nil {
				return -1, &fs.PathError{Op: "openat", Path: name, Err: err}
			}
			_ = unix.Close(c.fd)
			c.fd = fd
		}
	}
	c.at = dir
	return c.fd, nil
}

// make makes one entry with its mode and label.
func (c *cursor) make(e Entry) error {
	parent, err := c.enter(path.Dir(e.Path))
	if err != nil {
		return err
	}
	name := path.Base(e.Path)
	if e.Path != "." {
		if err := create(parent, name, e, c.root); err != nil {
			return err
		}
	}
	at := fmt.Sprintf("/proc/self/fd/%d/%s", parent, name)
	if e.Kind == Mount {
		what := e.FS
		flags := uintptr(0)
		if e.FS == "bind" {
			what, flags = filepath.Join(c.root, e.Target), unix.MS_BIND
		}
		if err := unix.Mount(what, at, e.FS, flags, Bare(e.FS)); err != nil {
			return &fs.PathError{Op: "mount", Path: e.FS, Err: err}
		}
	}
	if e.HasMode {
		if err := unix.Fchmodat(parent, name, e.Mode, 0); err != nil {
			return &fs.PathError{Op: "fchmodat", Path: name, Err: err}
		}
	}
	if e.Label.Says == Given {
		if err := unix.Lsetxattr(at, Attr, []byte(e.Label.Raw), 0); err != nil {
			return &fs.PathError{Op: "lsetxattr", Path: name, Err: err}
		}
	}
	return nil
}

// Bare are the options with which a filesystem that has no labels is mounted.
// ramfs is one, but where SELinux is on only if one label is given to the whole.
func Bare(filesystem string) string {
	if filesystem == "ramfs" && Policed() {
		return "context=system_u:object_r:user_home_t:s0"
	}
	return ""
}

// create makes the bare entry; for a mount, the place to mount on.
func create(parent int, name string, e Entry, root string) error {
	node := func(kind uint32, dev uint64) error { return unix.Mknodat(parent, name, kind|0o644, int(dev)) }
	var err error
	switch e.Kind {
	case Dir:
		err = unix.Mkdirat(parent, name, 0o755)
		if err == unix.EEXIST && e.implied {
			err = nil // it is there through a bind mount
		}
	case File:
		err = node(unix.S_IFREG, 0)
	case Link:
		err = unix.Symlinkat(e.Target, parent, name)
	case Hardlink:
		err = unix.Linkat(unix.AT_FDCWD, filepath.Join(root, e.Target), parent, name, 0)
	case Fifo:
		err = node(unix.S_IFIFO, 0)
	case Socket:
		err = node(unix.S_IFSOCK, 0)
	case Char:
		err = node(unix.S_IFCHR, unix.Mkdev(e.Major, e.Minor))
	case Block:
		err = node(unix.S_IFBLK, unix.Mkdev(e.Major, e.Minor))
	case Mount:
		err = unix.Mkdirat(parent, name, 0o755)
		if e.FS == "bind" && err == nil {
			var st unix.Stat_t
			err = unix.Lstat(filepath.Join(root, e.Target), &st)
			if err == nil && st.Mode&unix.S_IFMT != unix.S_IFDIR {
				if err = unix.Unlinkat(parent, name, unix.AT_REMOVEDIR); err == nil {
					err = node(unix.S_IFREG, 0)
				}
			}
		}
		if err == unix.EEXIST {
			err = nil
		}
	default:
		err = fmt.Errorf("cannot make a %s", e.Kind)
	}
	if err != nil {
		return &fs.PathError{Op: "make " + string(e.Kind), Path: name, Err: err}
	}
	return nil
}
