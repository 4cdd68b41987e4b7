// SPDX-License-Identifier: Apache-2.0

package sys

import (
	"runtime"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Step is a call of a visit.
type Step uint32

// The steps of a visit, in their order.
const (
	StepClose Step = iota
	StepOpen
	StepRead
	StepWrite
	StepList
	StepDone
)

// Labelling says how a visit labels.
type Labelling uint8

// What a visit does with the label.
const (
	ReadFirst Labelling = iota // another one is overwritten
	Unread                     // it is overwritten
	ReadOnly                   // another one ends the visit, at StepRead: it is Value(N)
)

// Visit is what a visit found.
type Visit struct {
	FD      int // -1 unless the directory was opened
	Wrong   bool
	Written bool
	N       int  // bytes of records, or of the label that ended it
	End     bool // there are no more
	Step    Step // at which Errno came; StepDone: at none
	Errno   Errno
}

// Visit closes toClose, the directory that was visited before, unless it is -1. It
// opens the directory name in dir, labels it, and reads its first records, all between
// one entersyscall and its exitsyscall (see Row). flags are for the open. at says which
// step comes next. Where a step fails the caller continues by ordinary calls.
//
//go:norace
//go:nocheckptr
func (a *Attr) Visit(toClose, dir int, name *byte, flags int, how Labelling, buf []byte, at *atomic.Uint32) Visit {
	v := Visit{FD: -1, Wrong: how == Unread}
	enter()
	if toClose >= 0 {
		StepClose.begin(at)
		closed(uintptr(toClose))
	}
	if v.open(dir, name, flags, at) && a.mend(&v, how, at) {
		v.list(buf, at)
	}
	exit()
	// The collector runs beside the call, and an address is no reference to it.
	runtime.KeepAlive(a)
	runtime.KeepAlive(name)
	runtime.KeepAlive(unsafe.SliceData(buf))
	return v
}

// begin says that the step comes next.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (s Step) begin(at *atomic.Uint32) {
	atomic.StoreUint32((*uint32)(unsafe.Pointer(at)), uint32(s))
}

// open, mend and list are the steps of a visit. They say whether it goes on.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (v *Visit) open(dir int, name *byte, flags int, at *atomic.Uint32) bool {
	v.Step = StepOpen
	StepOpen.begin(at)
	fd, e := retried(unix.SYS_OPENAT, uintptr(dir), uintptr(unsafe.Pointer(name)), uintptr(flags|unix.O_LARGEFILE), 0, 0, 0)
	if v.Errno = e; e != 0 {
		return false
	}
	v.FD = int(fd)
	return true
}

//go:nosplit
//go:norace
//go:nocheckptr
func (a *Attr) mend(v *Visit, how Labelling, at *atomic.Uint32) bool {
	fd := uintptr(v.FD)
	if how != Unread {
		v.Step = StepRead
		StepRead.begin(at)
		n, e := retried(unix.SYS_FGETXATTR, fd, uintptr(unsafe.Pointer(a.name)), uintptr(a.get.value), uintptr(a.get.size), 0, 0)
		if e != 0 && e != unix.ENODATA && e != unix.ERANGE {
			v.Errno = e
			return false
		}
		v.Wrong = e != 0 || !equal(unsafe.Pointer(unsafe.SliceData(a.buf)), n, unsafe.Pointer(unsafe.SliceData(a.value)), uintptr(len(a.value)))
		if v.Wrong && how == ReadOnly {
			v.N, v.Errno = int(n), e
			return false
		}
	}
	if v.Wrong {
		v.Step = StepWrite
		StepWrite.begin(at)
		if _, v.Errno = retried(unix.SYS_FSETXATTR, fd, uintptr(unsafe.Pointer(a.name)), uintptr(a.set.value), uintptr(a.set.size), 0, 0); v.Errno != 0 {
			return false
		}
		v.Written = true
	}
	return true
}

//go:nosplit
//go:norace
//go:nocheckptr
func (v *Visit) list(buf []byte, at *atomic.Uint32) {
	v.Step = StepList
	StepList.begin(at)
	to := uintptr(unsafe.Pointer(unsafe.SliceData(buf)))
	for len(buf)-v.N >= RecordMax {
		n, e := retried(unix.SYS_GETDENTS64, uintptr(v.FD), to+uintptr(v.N), uintptr(len(buf)-v.N), 0, 0, 0)
		if v.Errno = e; e != 0 {
			return
		}
		if n == 0 {
			v.End = true
			break
		}
		v.N += int(n)
	}
	v.Step = StepDone
}
