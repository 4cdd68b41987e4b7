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

// Labelling is a way to label in a visit.
type Labelling uint8

// What a visit does with the label.
const (
	ReadFirst Labelling = iota // another one is overwritten
	Unread                     // it is overwritten
	ReadOnly                   // another one ends the visit, at StepRead: it is Value(N)
)

// Visit is the result of a visit.
type Visit struct {
	FD    int // -1 unless the directory was opened
	Wrong bool
	N     int  // bytes of records, or of the label that ended it
	End   bool // there are no more
	Step  Step // at which Errno came; StepDone: at none
	Errno Errno
}

// Visit closes toClose, unless it is -1, opens the directory name in dir by flags, labels it, and
// reads its first records, all between one entersyscall and its exitsyscall (see Row). at says which
// step comes next. Where a step fails the caller continues by ordinary calls.
func (a *Attr) Visit(toClose, dir int, name *byte, flags int, how Labelling, buf []byte, at *atomic.Uint32) Visit {
	v := Visit{FD: -1, Wrong: how == Unread}
	records := uintptr(unsafe.Pointer(unsafe.SliceData(buf)))
	enter()
	if toClose >= 0 {
		v.begin(StepClose, at)
		closed(uintptr(toClose))
	}
	v.begin(StepOpen, at)
	fd, e := retried(unix.SYS_OPENAT, uintptr(dir), uintptr(unsafe.Pointer(name)), uintptr(flags|unix.O_LARGEFILE), 0, 0, 0)
	v.Errno = e
	more := e == 0
	if more {
		v.FD = int(fd)
	}
	if more && how != Unread {
		v.begin(StepRead, at)
		n, e := a.read(Opened, v.FD, 0)
		v.Wrong = e != 0 || !a.found(n)
		if e != 0 && e != unix.ENODATA && e != unix.ERANGE || v.Wrong && how == ReadOnly {
			v.N, v.Errno, more = int(n), e, false
		}
	}
	if more && v.Wrong {
		v.begin(StepWrite, at)
		_, v.Errno = a.write(Opened, v.FD, 0)
		more = v.Errno == 0
	}
	if more {
		v.begin(StepList, at)
	}
	for more && !v.End && len(buf)-v.N >= RecordMax {
		n, e := retried(unix.SYS_GETDENTS64, fd, records+uintptr(v.N), uintptr(len(buf)-v.N), 0, 0, 0)
		if v.Errno = e; e != 0 {
			more = false
			break
		}
		v.N += int(n)
		v.End = n == 0
	}
	if more {
		v.Step = StepDone
	}
	exit()
	runtime.KeepAlive(a)
	runtime.KeepAlive(name)
	runtime.KeepAlive(unsafe.SliceData(buf))
	return v
}

// begin says that the step comes next.
//
//go:nosplit
//go:nocheckptr
func (v *Visit) begin(s Step, at *atomic.Uint32) {
	v.Step = s
	atomic.StoreUint32((*uint32)(unsafe.Pointer(at)), uint32(s))
}
