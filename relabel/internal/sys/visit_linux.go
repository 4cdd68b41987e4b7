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

// Visit is what a visit found.
type Visit struct {
	FD      int // -1 unless the directory was opened
	Wrong   bool
	Written bool
	N       int  // bytes of records
	End     bool // there are no more
	Step    Step // at which Errno came; StepDone: at none
	Errno   Errno
}

// Visit closes spent, the directory that was visited before, unless it is -1. It
// opens the directory name in dir, labels it, and reads its first records, without
// a word to the scheduler in between (see Row). flags are for the open. unread
// leaves out the look at the label. at says which step comes next. What ends it
// early is for the caller to go on with.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (a *Attr) Visit(spent, dir int, name *byte, flags int, unread bool, buf []byte, at *atomic.Uint32) Visit {
	enter()
	v := a.visit(spent, dir, name, flags, unread, buf, at)
	exit()
	// The collector runs meanwhile, and an address is no reference to it.
	runtime.KeepAlive(a)
	runtime.KeepAlive(name)
	runtime.KeepAlive(unsafe.SliceData(buf))
	return v
}

//go:nosplit
//go:norace
//go:nocheckptr
func (a *Attr) visit(spent, dir int, name *byte, flags int, unread bool, buf []byte, at *atomic.Uint32) Visit {
	if spent >= 0 {
		at.Store(uint32(StepClose))
		_, _, _ = rawSyscall6(unix.SYS_CLOSE, uintptr(spent), 0, 0, 0, 0, 0) // gone whatever the answer
	}
	at.Store(uint32(StepOpen))
	fd, e := retried(unix.SYS_OPENAT, uintptr(dir), uintptr(unsafe.Pointer(name)), uintptr(flags|unix.O_LARGEFILE), 0, 0, 0)
	if e != 0 {
		return Visit{FD: -1, Step: StepOpen, Errno: e}
	}
	v := Visit{FD: int(fd), Wrong: unread}
	if !unread {
		at.Store(uint32(StepRead))
		n, e := retried(unix.SYS_FGETXATTR, fd, uintptr(unsafe.Pointer(a.name)), uintptr(unsafe.Pointer(&a.buf)), uintptr(a.get.size), 0, 0)
		if e != 0 && e != unix.ENODATA && e != unix.ERANGE {
			v.Step, v.Errno = StepRead, e
			return v
		}
		v.Wrong = e != 0 || !equal(unsafe.Pointer(&a.buf), n, unsafe.Pointer(unsafe.SliceData(a.value)), uintptr(len(a.value)))
	}
	if v.Wrong {
		at.Store(uint32(StepWrite))
		if _, e := retried(unix.SYS_FSETXATTR, fd, uintptr(unsafe.Pointer(a.name)), uintptr(a.set.value), uintptr(a.set.size), 0, 0); e != 0 {
			v.Step, v.Errno = StepWrite, e
			return v
		}
		v.Written = true
	}
	at.Store(uint32(StepList))
	to := uintptr(unsafe.Pointer(unsafe.SliceData(buf)))
	for len(buf)-v.N >= RecordMax {
		n, e := retried(unix.SYS_GETDENTS64, fd, to+uintptr(v.N), uintptr(len(buf)-v.N), 0, 0, 0)
		if e != 0 {
			v.Step, v.Errno = StepList, e
			return v
		}
		if n == 0 {
			v.End = true
			break
		}
		v.N += int(n)
	}
	v.Step = StepDone
	return v
}
