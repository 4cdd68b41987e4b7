// SPDX-License-Identifier: Apache-2.0

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
func New(label string) IO { return IO{Attr: sys.NewAttr(Attribute, label), Label: label} }

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

// Relabel reads the label of the pinned target, unless it is known, and writes the one that choose
// returns, if that is not "". It returns the call that failed, or what choose did in its place.
func (x *IO) Relabel(t Target, known *Label, now func(SyscallKind), choose func(has Label) (to, op string, e sys.Errno)) (op string, e sys.Errno) {
	var has Label
	if known != nil {
		has = *known
	} else {
		now(x.Reads(t))
		if has, op, e = x.Read(t); e != 0 {
			return op, e
		}
	}
	to, op, e := choose(has)
	if e != 0 || to == "" {
		return op, e
	}
	x.SetLabel(to)
	now(x.Writes(t))
	return x.Write(t)
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

// Unsupported reports whether the target, which is not pinned, can have no label, by reading
// it and, where want is one to write, by writing it.
func (x *IO) Unsupported(t Target, want func() string) bool {
	if _, e := x.Pin(t); e != 0 {
		return false
	}
	defer x.Unpin(t)
	_, _, e := x.Read(t)
	if e == syscall.ENOTSUP {
		if to := want(); to != "" {
			x.SetLabel(to)
			_, e = x.Write(t)
		}
	}
	return e == syscall.ENOTSUP
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
