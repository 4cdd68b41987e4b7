// SPDX-License-Identifier: Apache-2.0

package mounts

import (
	"syscall"

	"github.com/fastlabel/fastlabel/internal/sys"
)

// Confinement is a means to keep the walk of a mount inside that mount.
type Confinement uint8

const (
	// Clone: a private copy of the mount in which nothing is or will be mounted, and links lead
	// nowhere. The cheapest call is then safe.
	Clone Confinement = iota
	// Resolve: openat2 refuses to cross mounts and to follow links; each entry is pinned by an
	// O_PATH descriptor, since a file may be mounted over a name at any time.
	Resolve
	// CompareIDs: without openat2 each descriptor's mount id is compared with the top's.
	CompareIDs
)

func (c Confinement) String() string {
	return [...]string{"clone", "openat2", "mountid"}[c]
}

// cannotClone reports whether e says that this process or kernel cannot clone this mount.
func cannotClone(e sys.Errno) bool {
	switch e {
	case syscall.ENOSYS, // before Linux 5.12
		syscall.EPERM,  // no CAP_SYS_ADMIN here, or a seccomp profile
		syscall.EACCES, // the policy's no
		syscall.EINVAL: // another namespace's mount, or locked mounts beneath; before Linux 5.14
		return true
	}
	return false
}

// clone makes the private clone of what at stands in, and opens its top.
// The clone is tree, to be kept open: the open top would keep the mount alive by
// itself, but one that belongs to no namespace takes the lock of all mounts at
// the end of each call that is made in it, a fifth of the time of a walk.
//
// At stays open beside it, since a clone does not make its original busy: who unmounts the
// volume and takes the device away, as a CSI driver does, would take it from a filesystem at work.
// EBUSY is the right answer until the run has ended. (TestUnmountBusy)
func clone(at int) (top, tree int, op string, e sys.Errno) {
	if tree, e = sys.OpenTree(at); e != 0 {
		return -1, -1, "open_tree", e
	}
	op = "mount_setattr"
	if e = sys.MountSeclude(tree); e == 0 {
		op = "openat"
		top, e = Reopen(tree)
	}
	if e != 0 {
		sys.Close(tree)
		return -1, -1, op, e
	}
	return top, tree, "", 0
}

// openDir opens the directory name in dir without touching its access time where the
// caller may, which spares a write for each directory.
func openDir(dir int, name *byte) (int, sys.Errno) {
	fd, e := sys.Openat(dir, name, sys.OpenDir|sys.NoAtime, 0)
	if e == syscall.EPERM {
		return sys.Openat(dir, name, sys.OpenDir, 0)
	}
	return fd, e
}

// Reopen opens the directory that fd is, for reading.
func Reopen(fd int) (int, sys.Errno) { return openDir(fd, sys.Cname(".")) }

// OpenDir opens the directory name in dir for reading, inside m. Where it may be another
// mount it is pinned before: that triggers no automount.
func (m *Mount) OpenDir(dir int, name *byte) (int, string, sys.Errno) {
	if m.Confined == Clone {
		fd, e := openDir(dir, name)
		return fd, "openat", e
	}
	at, op, e := m.Pin(dir, name)
	if e != 0 {
		return -1, op, e
	}
	defer sys.Close(at)
	fd, e := Reopen(at)
	return fd, "openat", e
}

// Pin opens the entry name in dir as an O_PATH descriptor, inside m.
func (m *Mount) Pin(dir int, name *byte) (int, string, sys.Errno) {
	if m.Confined != CompareIDs {
		fd, e := sys.Openat2(dir, name, sys.OpenPath, sys.Confined)
		return fd, "openat2", e
	}
	fd, e := sys.Openat(dir, name, sys.OpenPath, 0)
	if e != 0 {
		return -1, "openat", e
	}
	id, e := m.proc.MountID(fd)
	if e == 0 && id != m.Stat.Mount {
		e = syscall.EXDEV // as openat2
	}
	if e != 0 {
		sys.Close(fd)
		return -1, "statx", e
	}
	return fd, "", 0
}
