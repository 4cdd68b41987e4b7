// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"runtime"
	"time"

	"github.com/fastlabel/fastlabel/relabel/internal/sys"
)

// way is how an entry's label is read and written without opening the entry.
type way uint8

const (
	// byDescriptor: an O_PATH descriptor and /proc/self/fd. Any kernel, any
	// confinement; four calls where the others make one.
	byDescriptor way = iota
	// byThread: lsetxattr of a bare name by a thread with a working
	// directory of its own. Any kernel that lets the thread unshare it.
	byThread
	// byName: setxattrat and getxattrat, Linux 6.13.
	byName
)

func (w way) String() string {
	return [...]string{"fd", "fchdir", "setxattrat"}[w]
}

// means is what this kernel lets us do, found out once for a run.
type means struct {
	way     way  // the best inside a clone
	clones  bool // private clones are worth a try
	openat2 bool
	sorting sorting

	// For tests: every filesystem counts as one with a server, and the tuner
	// looks so often and finds the processors idle.
	served   bool
	restless time.Duration
}

// probe asks the kernel. It remembers only what cannot be done.
func probe() means {
	m := means{clones: true, openat2: sys.HasOpenat2(), sorting: ample}
	switch {
	case sys.HasXattrat():
		m.way = byName
	case threadOfOwn():
		m.way = byThread
	}
	return m
}

// threadOfOwn tries unshare on a thread that ends with it: its goroutine never
// unlocks, so the scheduler cannot get it back.
func threadOfOwn() bool {
	answer := make(chan bool)
	go func() {
		runtime.LockOSThread()
		if sys.MainThread() { // it could not end: ask another, held off this one
			defer runtime.UnlockOSThread()
			answer <- threadOfOwn()
			return
		}
		answer <- sys.UnshareFS() == 0
	}()
	return <-answer
}

// deed is a call that a worker makes of an entry or a directory.
type deed uint32

const (
	opening  deed = iota
	sweeping      // reading or writing a row's name: see sweepsAt
	visiting      // closing a directory; opening, labelling or reading one: see visitsAt
	openingIn
	reading
	asking
	closing
	getxattr
	fgetxattr
	lgetxattr
	getxattrat
	setxattr
	fsetxattr
	lsetxattr
	setxattrat
	syncing // a Recorder's file
)

func (d deed) String() string {
	return [...]string{
		"openat", "setxattrat", "openat", "openat2", "getdents64", "statx", "close",
		"getxattr", "fgetxattr", "lgetxattr", "getxattrat", "setxattr", "fsetxattr", "lsetxattr", "setxattrat", "fdatasync",
	}[d]
}

// reads and writes are the calls by which the target's label is had and set.
func (h *hand) reads(t target) deed {
	switch {
	case t.pinned:
		return getxattr
	case t.name == nil:
		return fgetxattr
	}
	return [...]deed{byDescriptor: getxattr, byThread: lgetxattr, byName: getxattrat}[h.way]
}

func (h *hand) writes(t target) deed { return h.reads(t) + setxattr - getxattr }

// target is an entry to label: name in the directory fd or, where name is nil,
// what fd itself is: an open directory or, pinned, an O_PATH descriptor.
type target struct {
	fd     int
	name   *byte
	pinned bool
}

// stat asks what the target is. A link is asked about itself.
func (t target) stat() (sys.Stat, sys.Errno) {
	if t.name == nil {
		return sys.Fstatx(t.fd)
	}
	return sys.Statx(t.fd, t.name)
}

// hand is one worker's way to labels. It belongs to one goroutine, which for
// byThread is locked to its thread.
type hand struct {
	*sys.Attr
	way   way
	m     *mount
	entry int // byDescriptor: the pinned entry
}

// ready makes the calling goroutine fit for its way.
func (h *hand) ready() (string, sys.Errno) {
	if h.way != byThread {
		return "", 0
	}
	runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
	if sys.MainThread() {
		// It would not end, and its working directory is what others see
		// as the process's. The longer way needs no thread.
		runtime.UnlockOSThread()
		h.way = byDescriptor
		return "", 0
	}
	return "unshare", sys.UnshareFS()
}

// enter readies the hand for names in the directory dir.
func (h *hand) enter(dir int) (string, sys.Errno) {
	if h.way != byThread {
		return "", 0
	}
	return "fchdir", sys.Fchdir(dir)
}

// take pins the target for the calls that follow; drop lets it go.
func (h *hand) take(t target) (string, sys.Errno) {
	if h.way != byDescriptor || t.name == nil {
		return "", 0
	}
	fd, op, e := h.m.pin(t.fd, t.name)
	h.entry = fd
	return op, e
}

func (h *hand) drop(t target) {
	if h.way == byDescriptor && t.name != nil {
		sys.Close(h.entry)
	}
}

// pinned is the O_PATH descriptor of a target that is pinned.
func (h *hand) pinned(t target) int {
	if t.pinned {
		return t.fd
	}
	return h.entry
}

// get reads the target's label; set writes it.
func (h *hand) get(t target) (n int, op string, e sys.Errno) {
	call := h.reads(t)
	switch {
	case t.pinned:
		n, e = h.GetxattrFd(t.fd)
	case call == fgetxattr:
		n, e = h.Fgetxattr(t.fd)
	case call == getxattrat:
		n, e = h.Getxattrat(t.fd, t.name)
	case call == lgetxattr:
		n, e = h.Lgetxattr(t.name)
	default:
		n, e = h.GetxattrFd(h.entry)
	}
	return n, call.String(), e
}

func (h *hand) set(t target) (op string, e sys.Errno) {
	call := h.writes(t)
	switch {
	case t.pinned:
		e = h.SetxattrFd(t.fd)
	case call == fsetxattr:
		e = h.Fsetxattr(t.fd)
	case call == setxattrat:
		e = h.Setxattrat(t.fd, t.name)
	case call == lsetxattr:
		e = h.Lsetxattr(t.name)
	default:
		e = h.SetxattrFd(h.entry)
	}
	return call.String(), e
}
