// SPDX-License-Identifier: Apache-2.0

package sys

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// foundMost is the longest label that a look at a row keeps: containers' labels
// have some 45 bytes, and the kernel clears as much memory as it is offered.
const foundMost = 128

// Found is what a look at a row found.
type Found struct {
	n    [RowLen]int16
	text [RowLen][foundMost]byte
}

// At is the label of the name i of the row, and whether it had one.
func (f *Found) At(i int) ([]byte, bool) {
	if f.n[i] < 0 {
		return nil, false
	}
	return f.text[i][:f.n[i]], true
}

// Look reads the attribute of the names from..to of the row, as Mend does, and
// writes none. It returns the name at which it ended, with which the trouble is. A longer label than a Found holds is answered by ERANGE.
//
//go:norace
//go:nocheckptr
func (a *Attr) Look(r *Row, from, to int, o Order, f *Found) (at int, trouble Trouble, errno Errno) {
	base := unsafe.Pointer(r.Base)
	enter()
	for at = from; at < to; {
		if r.stopped() {
			trouble = Stopped
			break
		}
		r.calls(at, 0)
		name := uintptr(base) + uintptr(r.At[at]) + uintptr(r.Head)
		n, e := a.lookInto(o.Way, o.Dir, name, unsafe.Pointer(&f.text[at]))
		if e != 0 && e != unix.ENODATA {
			trouble, errno = ReadErr, e
			break
		}
		f.n[at] = int16(n)
		if e != 0 {
			f.n[at] = -1
		}
		at++
	}
	exit()
	// The collector runs beside the call, and an address is no reference to it.
	runtime.KeepAlive(a)
	runtime.KeepAlive(r)
	runtime.KeepAlive(f)
	return at, trouble, errno
}

//go:nosplit
//go:norace
//go:nocheckptr
func (a *Attr) lookInto(way Way, dir int, name uintptr, to unsafe.Pointer) (uintptr, Errno) {
	if way == ByName {
		args := xattrArgs{value: uint64(uintptr(to)), size: foundMost}
		return retried(unix.SYS_GETXATTRAT, uintptr(dir), name, unix.AT_SYMLINK_NOFOLLOW, uintptr(unsafe.Pointer(a.name)), uintptr(unsafe.Pointer(&args)), unsafe.Sizeof(args))
	}
	return retried(unix.SYS_LGETXATTR, name, uintptr(unsafe.Pointer(a.name)), uintptr(to), foundMost, 0, 0)
}
