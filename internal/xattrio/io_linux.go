// SPDX-License-Identifier: Apache-2.0

// Package xattrio reads and writes the label of one entry, which it does not open,
// and has the meaning of the errors for a walk.
//
// Where its Way needs the entry pinned, Pin comes before the calls of an IO and Unpin after them, so
// that what was read, asked about and compared is what is written. The only other place where an
// entry's label is read or written is sys.Attr's Mend, ReadRow and Visit: many names at once.
package xattrio

import (
	"runtime"
	"syscall"

	"github.com/fastlabel/fastlabel/internal/secctx"
	"github.com/fastlabel/fastlabel/internal/sys"
)

// Attribute has a file's security context.
const Attribute = "security.selinux"

// Target is an entry: Name in the directory FD or, where Name is nil, what FD
// itself is: an open file or, Pinned, an O_PATH descriptor.
type Target struct {
	FD     int
	Name   *byte
	Pinned bool
	Kind   sys.Kind // as its directory says; KindUnknown: ask
	Ino    uint64   // as its directory says, that of what lies under another mount; 0: not known
}

// Stat asks what the target is. A link is asked about itself.
func (t Target) Stat() (sys.Stat, sys.Errno) { return sys.Statx(t.FD, t.Name) }

// String is the target's name, "" for what is open, for messages.
func (t Target) String() string { return sys.Text(t.Name) }

// Label is a label as it was read. It is valid until the next Read. It is empty where there
// is none, or one longer than there was room for.
type Label []byte

// Is reports whether the label is want, which is canonical.
func (l Label) Is(want string) bool { return secctx.Same([]byte(l), want) }

// String is the label without its NUL.
func (l Label) String() string { return secctx.Trim([]byte(l)) }

// IO reads and writes labels. It belongs to one goroutine, which for ByThread is locked to its thread.
type IO struct {
	Attr  *sys.Attr // its value is Label
	Label string    // to write: see SetLabel
	Way   sys.Way
	Stale bool // the server is asked before a label is read
	// Open opens name in dir as an O_PATH descriptor, inside the mount that is walked, for
	// ByDescriptor.
	Open  func(dir int, name *byte) (fd int, op string, e sys.Errno)
	entry int // ByDescriptor: the one that is pinned
}

// New readies label for writing to targets without a name.
func New(label string) IO { return IO{Attr: sys.NewAttr(Attribute+"\x00", label), Label: label} }

// SetLabel has label written from now on.
func (x *IO) SetLabel(label string) {
	if label != x.Label {
		x.Label = label
		x.Attr.SetValue(label)
	}
}

// Fastest asks the kernel for the fastest way that it has.
func Fastest() sys.Way {
	switch {
	case sys.HasXattrat():
		return sys.ByName
	case sys.HasUnshare():
		return sys.ByThread
	}
	return sys.ByDescriptor
}

// Ready makes the calling goroutine fit for its way.
func (x *IO) Ready() (string, sys.Errno) {
	if x.Way != sys.ByThread {
		return "", 0
	}
	runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
	if sys.MainThread() {  // it would not end, and its working directory is seen as the process's
		runtime.UnlockOSThread()
		x.Way = sys.ByDescriptor
		return "", 0
	}
	return "unshare", sys.UnshareFS()
}

// Enter readies the IO for names in the directory dir.
func (x *IO) Enter(dir int) (string, sys.Errno) {
	if x.Way != sys.ByThread {
		return "", 0
	}
	return "fchdir", sys.Fchdir(dir)
}

// Pin pins the target, where that is the way, for the calls that follow.
func (x *IO) Pin(t Target) (op string, e sys.Errno) {
	if x.Way == sys.ByDescriptor && t.Name != nil {
		x.entry, op, e = x.Open(t.FD, t.Name)
	}
	return op, e
}

// Unpin is the end of a Pin that answered 0.
func (x *IO) Unpin(t Target) {
	if x.Way == sys.ByDescriptor && t.Name != nil {
		sys.Close(x.entry)
	}
}

// reach returns how the target is reached.
func (x *IO) reach(t Target) (way sys.Way, dir int, name *byte) {
	switch {
	case t.Name == nil && !t.Pinned:
		return sys.Opened, t.FD, nil
	case t.Name == nil:
		return sys.ByDescriptor, t.FD, nil
	case x.Way == sys.ByDescriptor:
		return sys.ByDescriptor, x.entry, nil
	}
	return x.Way, t.FD, t.Name
}

// Stat asks what the target is or, where it is pinned, what is pinned.
func (x *IO) Stat(t Target) (sys.Stat, sys.Errno) {
	_, dir, name := x.reach(t)
	return sys.Statx(dir, name)
}

// Has reports whether the target, which is not pinned, has the label by now.
func (x *IO) Has(t Target, label string) bool {
	if _, e := x.Pin(t); e != 0 {
		return false
	}
	defer x.Unpin(t)
	has, _, e := x.Read(t)
	return e == 0 && has.Is(label)
}

// Read reads the target's label. That it has none, or a longer one than there is
// room for, is an answer and no error.
func (x *IO) Read(t Target) (has Label, op string, e sys.Errno) {
	way, dir, name := x.reach(t)
	if x.Stale {
		if _, e = sys.Refresh(dir, name); e != 0 {
			return has, Statx.String(), e
		}
	}
	has, e = x.Found(x.Attr.Get(way, dir, name))
	return has, Reads(way).String(), e
}

// Found is the label that a read of n bytes or its errno answers.
func (x *IO) Found(n int, errno sys.Errno) (has Label, e sys.Errno) {
	switch errno {
	case 0:
		return x.Attr.Value(n), 0
	case syscall.ENODATA, syscall.ERANGE:
		return nil, 0
	}
	return nil, errno
}

// Write gives the target the label.
func (x *IO) Write(t Target) (op string, e sys.Errno) {
	return x.Writes(t).String(), x.Attr.Set(x.reach(t))
}

// Reads is the call by which the target's label is read.
func (x *IO) Reads(t Target) SyscallKind {
	way, _, _ := x.reach(t)
	return Reads(way)
}

// Writes is the call by which it is written.
func (x *IO) Writes(t Target) SyscallKind {
	way, _, _ := x.reach(t)
	return Writes(way)
}

// SyscallKind is a system call that is made of an entry or a directory.
type SyscallKind uint32

// Each has the name of its call, but for the two that make several.
const (
	Openat SyscallKind = iota
	Row                // reading or writing the names of a row
	Visit              // closing a directory; opening, labelling or reading the next
	Openat2
	Getdents64
	Statx
	Close
	Getxattr
	Fgetxattr
	Lgetxattr
	Getxattrat
	Setxattr
	Fsetxattr
	Lsetxattr
	Setxattrat
	Ioctl     // where a directory lies
	Fadvise64 // on the disk
)

func (k SyscallKind) String() string {
	return [...]string{
		"openat", "setxattrat", "openat", "openat2", "getdents64", "statx", "close",
		"getxattr", "fgetxattr", "lgetxattr", "getxattrat", "setxattr", "fsetxattr", "lsetxattr", "setxattrat", "ioctl", "fadvise64",
	}[k]
}

// Reads is the call by which a label is read.
func Reads(way sys.Way) SyscallKind {
	return [...]SyscallKind{sys.ByDescriptor: Getxattr, sys.ByThread: Lgetxattr, sys.ByName: Getxattrat, sys.Opened: Fgetxattr}[way]
}

// Writes is the call by which it is written.
func Writes(way sys.Way) SyscallKind { return Reads(way) + Setxattr - Getxattr }

// Visits is the call that a visit makes at a step.
func Visits(s sys.Step) SyscallKind {
	return [...]SyscallKind{Close, Openat, Fgetxattr, Fsetxattr, Getdents64, Getdents64}[s]
}
