// SPDX-License-Identifier: Apache-2.0

package survey

import (
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"strconv"
	"syscall"
	"time"
	"unsafe"
)

// dir is a directory of the tree. It is reached from the root name by name, so
// that no descriptor has to be kept and no path is looked up.
type dir struct {
	parent  *dir
	name    string
	depth   int // of the root 0
	listed  bool
	entries int64    // without mounts
	dirs    int64    // of these
	sub     []*dir   // of these, those that are kept
	unread  []string // names whose labels were not read yet
}

func (d *dir) isRoot() bool { return d.parent == nil }

// path is that of d, for messages and for the mount table.
func (d *dir) path(root string) string {
	if d.isRoot() {
		return root
	}
	above := d.parent.path(root)
	if above == "/" {
		return above + d.name
	}
	return above + "/" + d.name
}

// oPath is O_PATH, which package syscall lacks. What is opened so is not looked
// into: neither an automount nor a server is asked for it.
const oPath = 0x200000

// reach opens d beneath root, which is an O_PATH descriptor, for naming what is
// in it. No link is followed: an O_PATH descriptor of one leads nowhere.
func (d *dir) reach(root int) (int, error) {
	if d.isRoot() {
		return openat(root, ".", oPath)
	}
	above, err := d.parent.reach(root)
	if err != nil {
		return -1, err
	}
	defer func() { _ = syscall.Close(above) }()
	return openat(above, d.name, oPath)
}

func openat(at int, name string, flags int) (int, error) {
	for {
		fd, err := syscall.Openat(at, name, flags|syscall.O_NOFOLLOW|syscall.O_CLOEXEC, 0)
		if err != syscall.EINTR {
			return fd, err
		}
	}
}

// openReading opens the directory fd for reading, if it may without moving its
// access time.
func openReading(fd int) (int, error) {
	const flags = syscall.O_RDONLY | syscall.O_DIRECTORY
	n, err := openat(fd, ".", flags|syscall.O_NOATIME)
	if errors.Is(err, syscall.EPERM) {
		return openat(fd, ".", flags)
	}
	return n, err
}

// procPath names the entry of fd's directory for calls that take a path; they
// follow no link at its end.
func procPath(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }

// list reads the names in d and keeps some of them.
func (s *survey) list(d *dir, fd int) {
	begin, before := time.Now(), s.reading
	defer func() { s.listing += time.Since(begin) - (s.reading - before) }()
	reading, err := openReading(fd)
	if err != nil {
		s.failed("openat", d.path(s.path), err)
		return
	}
	// With this name ReadDir asks for the kind of an entry where the filesystem
	// does not tell.
	f := os.NewFile(uintptr(reading), procPath(reading))
	defer func() { _ = f.Close() }()
	s.Directories++
	at := d.path(s.path)
	if at == "/" {
		at = ""
	}
	for {
		entries, err := f.ReadDir(1024)
		for _, e := range entries {
			if s.mounted(at + "/" + e.Name()) {
				continue
			}
			d.entries++
			s.names++
			if e.IsDir() {
				d.dirs++
				s.keepDir(d, e.Name())
			}
			if s.all || s.kept < s.limits.Entries {
				s.kept++
				d.unread = append(d.unread, e.Name())
			} else {
				s.dropped = true
			}
		}
		if s.all {
			s.read(d, fd, len(d.unread))
		}
		switch {
		case errors.Is(err, io.EOF):
			return
		case err != nil:
			s.failed("getdents64", d.path(s.path), err)
			return
		case s.over(), !s.all && time.Since(begin) > s.limits.Time/4: // there is to be time for labels
			s.missed, s.cut = true, true
			return
		}
	}
}

// keepDir keeps a directory of d; where there are many, some drawn from all. To
// reach a deep one takes as many calls as it is deep.
func (s *survey) keepDir(d *dir, name string) {
	const most, deepest = 10_000, 1000
	sub := &dir{parent: d, name: name, depth: d.depth + 1}
	if s.all || d.dirs <= most && sub.depth <= deepest {
		d.sub = append(d.sub, sub)
		return
	}
	s.missed = true
	if sub.depth > deepest {
		s.cut = true
		return
	}
	if i := rand.Int64N(d.dirs); i < most {
		d.sub[i] = sub
	}
}

// read reads the labels of up to n entries of d, drawn from those unread.
func (s *survey) read(d *dir, fd, n int) {
	begin, before := time.Now(), s.Entries
	defer func() {
		s.reading += time.Since(begin)
		s.readings += s.Entries - before
	}()
	prefix := procPath(fd) + "/"
	for ; n > 0 && len(d.unread) > 0 && !s.over(); n-- {
		i, last := rand.IntN(len(d.unread)), len(d.unread)-1
		name := d.unread[i]
		d.unread[i], d.unread[last] = d.unread[last], ""
		d.unread = d.unread[:last]
		label, err := s.label(prefix + name)
		switch {
		case errors.Is(err, fs.ErrNotExist): // removed meanwhile
			continue
		case err != nil:
			s.failed("lgetxattr", d.path(s.path)+"/"+name, err)
		default:
			s.counts.add(label, d.isRoot())
		}
		s.Entries++
	}
}

// label reads one; "" if there is none.
func (s *survey) label(path string) (string, error) {
	p, err := syscall.BytePtrFromString(path)
	if err != nil {
		return "", err
	}
	for {
		n, _, e := syscall.Syscall6(syscall.SYS_LGETXATTR, uintptr(unsafe.Pointer(p)), uintptr(unsafe.Pointer(&s.attribute[0])),
			uintptr(unsafe.Pointer(&s.buf[0])), uintptr(len(s.buf)), 0, 0)
		switch e {
		case 0:
			for n > 0 && s.buf[n-1] == 0 {
				n--
			}
			return string(s.buf[:n]), nil
		case syscall.EINTR:
			continue
		case syscall.ENODATA:
			return "", nil
		case syscall.ERANGE:
			return "(longer than 4,096 bytes)", nil
		}
		return "", e
	}
}
