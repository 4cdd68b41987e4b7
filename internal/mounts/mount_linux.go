// SPDX-License-Identifier: Apache-2.0

// Package mounts keeps a run inside its tree: which places are never relabelled, what is mounted in
// the tree, what in a mount is skipped, and how a walk is confined to it.
//
//	Exclusions ▶ OpenProc ▶ Refusals ▶ OpenRoot ▶ Admit ▶ Learn ▶ Enclose ▶ Find, for each submount
//
// What is looked up by a path is looked up before the root is opened, and all else from a descriptor
// of the root. From the walk's beginning a Proc is only read, by any goroutine, and so is a Mount
// from Enclose to Leave.
package mounts

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/fastlabel/fastlabel/internal/run"
	"github.com/fastlabel/fastlabel/internal/sys"
)

// ID identifies a file, by whatever path or mount it is reached.
type ID struct{ Dev, Ino uint64 }

// IDOf returns the ID of the file that st was asked of.
func IDOf(st sys.Stat) ID { return ID{st.Dev, st.Ino} }

// Mount is one mount of the tree, beneath the file or directory At. What follows At
// is there after Enclose.
type Mount struct {
	Path string   // of At as the caller would say it, for messages
	Real string   // and as the table of mounts has it, after Learn; "" if it is too long
	Stat sys.Stat // of At, with the mount's id
	At   int      // an O_PATH descriptor
	// Activity names the call on the mount that is under way.
	Activity *run.Activity

	Top      int   // At, open for reading, where the walk begins
	Kind     int64 // its filesystem, as sys.FSType says; 0 if that is not known
	Confined Confinement
	// Skip has what the walk skips, and why; "" is for what lies under another mount of the tree.
	// SkipInodes has the same by inode number alone, which a directory record has.
	Skip       map[ID]string
	SkipInodes map[uint64]bool
	// Asks: something is skipped here, and directory records may hold other inode numbers than
	// files: each is asked.
	Asks bool
	// ByDevice: a directory with another device number is skipped, as a subvolume of btrfs is.
	ByDevice bool

	Served bool // calls wait for a server
	Stale  bool // a label that the server is not asked for may be old

	proc          *Proc
	tree          int  // the clone itself; -1: there is none
	first         int  // the top as Enclose opened it the first time, after the second; -1: there was none
	oneFilesystem bool // other mounts of the tree are skipped

	noMounts, asked bool // see NoMounts
}

// ReadOnlySubvolume is the reason for an entry of one, which is skipped.
const ReadOnlySubvolume = "a read-only subvolume"

// Now names the call on m that comes next; with "" the last one has returned.
func (m *Mount) Now(call string) { m.Activity.At(call, m.Path) }

// OpenRoot opens the root as an O_PATH descriptor, whatever its kind: what dir is, if that is not
// nil. An automount is triggered.
func (p *Proc) OpenRoot(path string, dir *os.File, a *run.Activity) (*Mount, error) {
	a.At("openat", path)
	defer a.At("", "")
	var fd int
	var e sys.Errno
	if dir != nil {
		fd, e = sys.Dup(dir.Fd())
	} else if fd, e = openPath(path, sys.OpenPathDir); e == syscall.ENOTDIR { // an automount is triggered only by who wants a directory
		fd, e = openPath(path, sys.OpenPath)
	}
	if e != 0 {
		return nil, pathError("openat", path, e)
	}
	a.At("statx", path)
	root, e := p.locate(fd, path)
	if e != 0 {
		sys.Close(fd)
		return nil, pathError("statx", path, e)
	}
	root.Activity = a
	return root, nil
}

// openPath opens path. A name with a NUL is not that of a file that is gone.
func openPath(path string, flags int) (int, sys.Errno) {
	if strings.Contains(path, "\x00") {
		return -1, syscall.EINVAL
	}
	return sys.Openat(sys.AtFdcwd, sys.Cname(path), flags, 0)
}

// locate asks in which mount the O_PATH descriptor at stands.
func (p *Proc) locate(at int, path string) (*Mount, sys.Errno) {
	st, e := sys.Refresh(at, nil)
	if e == 0 && st.Mount == 0 {
		st.Mount, e = p.MountID(at)
	}
	if e != 0 {
		return nil, e
	}
	return &Mount{Path: path, Stat: st, At: at, Top: -1, tree: -1, first: -1, proc: p}, 0
}

// Close closes At.
func (m *Mount) Close() {
	if m.At >= 0 {
		sys.Close(m.At)
	}
}

// Try has the calls that are worth a try.
type Try struct{ Clone, Openat2 bool }

// NoMounts reports that nothing was mounted in m when it was called first (Linux 6.8). To say so the
// kernel goes through all mounts of the machine, 15 ns each.
func (m *Mount) NoMounts() bool {
	if !m.asked {
		m.asked = true
		if id, e := sys.UniqueMountID(m.Top); e == 0 {
			has, e := sys.HasMounts(id)
			m.noMounts = e == 0 && !has
		}
	}
	return m.noMounts
}

// know asks for the kind of m's filesystem, once.
func (m *Mount) know() {
	if m.Kind != 0 {
		return
	}
	m.Kind, _ = sys.FSType(m.At)
	m.Served, m.Stale = sys.Served(m.Kind), sys.Stale(m.Kind)
}

// Enclose opens the top directory of m, so that the walk cannot leave it: in a private clone where
// that can be had. The string is the call that failed. After one without a clone Enclose may follow
// again: what the first has opened stays open.
func (m *Mount) Enclose(b Bounds, try Try) (string, sys.Errno) {
	op, e := "open_tree", syscall.ENOSYS
	m.first, m.Top = m.Top, -1
	m.oneFilesystem, m.Confined = b.OneFilesystem, Clone
	m.Now("openat")
	defer m.Now("")
	if try.Clone {
		m.Top, m.tree, op, e = clone(m.At)
	}
	if e != 0 && cannotClone(e) {
		m.Confined = CompareIDs
		if try.Openat2 {
			m.Confined = Resolve
		}
		m.Top, e = Reopen(m.At)
		op = "openat"
	}
	if e != 0 {
		return op, e
	}
	m.Now("statfs")
	m.know()
	m.Now("statx")
	m.skipAll(b)
	return "", 0
}

// Leave closes what Enclose has opened.
func (m *Mount) Leave() {
	for _, fd := range [...]*int{&m.Top, &m.tree, &m.first} {
		if *fd >= 0 {
			sys.Close(*fd)
			*fd = -1
		}
	}
}

// InTheWay reports whether name in dir is in another mount than m, and why that is skipped; "" if it
// is walked on its own, as what was mounted at the start is.
func (m *Mount) InTheWay(dir int, name *byte) (why string, is bool) {
	if m.Confined == Clone { // there is none: a filesystem answers as if there were
		return "", false
	}
	var id uint64
	if fd, e := sys.Openat(dir, name, sys.OpenPath, 0); e == 0 {
		id, _ = m.proc.MountID(fd) // of 0 it is not known
		sys.Close(fd)
	}
	switch {
	case id == m.Stat.Mount:
		return "", false
	case m.proc.ByID(id) == nil:
		return "a filesystem was mounted over it during the run", true
	case m.oneFilesystem:
		return OtherFilesystem, true
	}
	return "", true
}

// OpenDisk opens the block device that m is on, for advice alone; -1 where there is none, or no node
// of it.
func (m *Mount) OpenDisk() int {
	to, err := os.Readlink(fmt.Sprintf("/sys/dev/block/%d:%d", m.Stat.Dev>>32, uint32(m.Stat.Dev)))
	if err != nil {
		return -1
	}
	node := "/dev/" + strings.ReplaceAll(filepath.Base(to), "!", "/") // as sysfs spells a slash
	fd, e := sys.Openat(sys.AtFdcwd, sys.Cname(node), sys.OpenDisk, 0)
	if e != 0 {
		return -1
	}
	return fd
}

// OpenOutside opens the working directory, for threads that will leave it.
func (m *Mount) OpenOutside() sys.Errno {
	p := m.proc
	p.once.Do(func() { p.cwd, p.cwdErrno = sys.Openat(sys.AtFdcwd, sys.Cname("."), sys.OpenPath, 0) })
	return p.cwdErrno
}

// Outside returns the working directory of the process, for a thread that was in m.
func (m *Mount) Outside() int { return m.proc.cwd }

// reach opens the entry at path beneath dir as an O_PATH descriptor, one name at a time,
// following no link. It crosses mounts, and returns which files it passed, the last included.
func reach(dir int, path string) (int, []ID, sys.Errno) {
	at := dir
	var passed []ID
	for name := range strings.SplitSeq(path, "/") {
		next, e := sys.Openat(at, sys.Cname(name), sys.OpenPath, 0)
		if at != dir {
			sys.Close(at)
		}
		if e != 0 {
			return -1, nil, e
		}
		at = next
		st, e := sys.Fstatx(at)
		if e != 0 {
			sys.Close(at)
			return -1, nil, e
		}
		passed = append(passed, IDOf(st))
	}
	return at, passed, 0
}
