// SPDX-License-Identifier: Apache-2.0

package sys

import (
	"runtime"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Informing the scheduler before and after each system call costs 175 ns, a
// quarter of what the call itself takes where all is in memory. Not informing it
// is no way out: a call that hangs, on a dead server or a frozen filesystem,
// would keep its processor and, at the next garbage collection, stop the whole
// program. So it is informed once a row. In between no Go code may run that grows
// the stack, writes a pointer or can be preempted, and that is all that the
// functions of this file do. The one that informs the scheduler may itself grow the
// stack, before it does; what it calls in between is nosplit, and the linker adds up
// the frames of that, which are large without optimization. What converts a pointer is
// nocheckptr, since the check is a call too.

// RowLen is the longest row: it makes the 175 ns six, and a network filesystem answers as many calls
// within a second after a stop.
const RowLen = 32

// Row is names in one directory that are labelled in one go, by one goroutine. Any other may set Stop
// and read Step.
type Row struct {
	// Base is where the names lie, which something else keeps alive, and
	// At[i]+Head where the name i begins, with a NUL behind it.
	Base *byte
	Head uint32
	At   [RowLen + 1]uint32
	// Step is the call under way, as Calling returns it.
	Step atomic.Uint32
	// Stop ends it before the next name.
	Stop *atomic.Bool
}

// Calling returns the name whose call is under way, -1 before the first, and whether that is a write.
func (r *Row) Calling() (name int, write bool) {
	step := int(r.Step.Load())
	return step/2 - 1, step%2 == 1
}

// Sweep is a way for Mend and ReadRow to go through a row.
type Sweep struct {
	// ByDescriptor pins each name: it is opened by openat2 inside the mount that Dir is in.
	// Elsewhere nothing is labelled: EXDEV.
	Way Way
	Dir int
	// Blind writes without reading, but where Turn, which counts names, is
	// a multiple of Check. The first that is found right ends it.
	Blind       bool
	Turn, Check int
	// ReadOnly writes nothing: the first that differs ends it, and is counted as Wrong.
	ReadOnly bool
}

// Done is the result of Mend.
type Done struct {
	Right, Written int
	Wrong          int // how many differed in a row, at the end
	Turn           int
	Errno          Errno // what ended it, at the name of the last call
	Write          bool  // that call was a write
}

// Mend goes through the names from..to of the row. A name without the
// attribute, or with a longer one than ours, differs.
func (a *Attr) Mend(r *Row, from, to int, o Sweep) (d Done) {
	base := unsafe.Pointer(r.Base)
	d.Turn = o.Turn
	enter()
	for i := from; i < to; i++ {
		if r.stopped() {
			break
		}
		name := uintptr(base) + uintptr(r.At[i]) + uintptr(r.Head)
		read := !o.Blind
		if o.Blind {
			d.Turn++
			read = d.Turn%o.Check == 0
		}
		dir := o.Dir
		if o.Way == ByDescriptor {
			first := uint32(1)
			if read {
				first = 0
			}
			r.calls(i, first)
			var fd uintptr
			if fd, d.Errno = a.pin(dir, name); d.Errno != 0 {
				d.Write = !read
				break
			}
			dir = int(fd)
		}
		right, write, e := false, !read, Errno(0)
		if read {
			r.calls(i, 0)
			var n uintptr
			n, e = a.read(o.Way, dir, name)
			right = e == 0 && a.found(n)
			if e == unix.ENODATA || e == unix.ERANGE {
				e = 0
			}
			if !right && e == 0 {
				d.Wrong++
				write = !o.ReadOnly
			}
		}
		if write {
			r.calls(i, 1)
			_, e = a.write(o.Way, dir, name)
		}
		if o.Way == ByDescriptor {
			closed(uintptr(dir))
		}
		if right {
			d.Right++
			d.Wrong = 0
			if o.Blind {
				break
			}
			continue
		}
		if d.Errno, d.Write = e, write && e != 0; e != 0 || !write {
			break
		}
		d.Written++
	}
	exit()
	// The collector runs beside the call, and an address is no reference to it.
	runtime.KeepAlive(a)
	runtime.KeepAlive(r)
	return d
}

// stopped and calls use functions of atomic, since where nothing is inlined the methods
// of its types may grow the stack. Each type is its value.
//
//go:nosplit
//go:nocheckptr
func (r *Row) stopped() bool { return atomic.LoadUint32((*uint32)(unsafe.Pointer(r.Stop))) != 0 }

// calls sets Step to a read (0) or a write (1) of name i.
//
//go:nosplit
//go:nocheckptr
func (r *Row) calls(i int, write uint32) {
	atomic.StoreUint32((*uint32)(unsafe.Pointer(&r.Step)), uint32(i+1)*2+write)
}

// found compares the n bytes that were read, with or without one NUL behind them, with
// the value.
//
//go:nosplit
//go:nocheckptr
func (a *Attr) found(n uintptr) bool {
	have, size := unsafe.Pointer(unsafe.SliceData(a.buf)), uintptr(len(a.value))
	if n == size+1 && *(*byte)(unsafe.Add(have, size)) == 0 {
		n--
	}
	return n == size && unsafe.String((*byte)(have), n) == unsafe.String(unsafe.SliceData(a.value), n)
}

// foundMost is the longest label that ReadRow reads: containers' labels
// have some 45 bytes, and the kernel clears as much memory as it is offered.
const foundMost = 128

// Found has what ReadRow has read.
type Found struct {
	n    [RowLen]int16
	text [RowLen][foundMost]byte
}

// At returns the label of the name i of the row; nil for none.
func (f *Found) At(i int) []byte {
	if f.n[i] < 0 {
		return nil
	}
	return f.text[i][:f.n[i]]
}

// ReadRow reads the attribute of the names from..to of the row, as Mend does, and
// writes none. It pins no name: o is ByName or ByThread. It returns the name at which it
// ended, and what its call answered. A label longer than a Found holds is answered by ERANGE.
func (a *Attr) ReadRow(r *Row, from, to int, o Sweep, f *Found) (at int, errno Errno) {
	base, own := unsafe.Pointer(r.Base), a.get
	enter()
	for at = from; at < to; at++ {
		if r.stopped() {
			break
		}
		r.calls(at, 0)
		a.get = xattrArgs{value: uint64(uintptr(unsafe.Pointer(&f.text[at]))), size: foundMost}
		n, e := a.read(o.Way, o.Dir, uintptr(base)+uintptr(r.At[at])+uintptr(r.Head))
		if e != 0 && e != unix.ENODATA {
			errno = e
			break
		}
		if f.n[at] = int16(n); e != 0 {
			f.n[at] = -1
		}
	}
	exit()
	a.get = own
	runtime.KeepAlive(a)
	runtime.KeepAlive(r)
	runtime.KeepAlive(f)
	return at, errno
}
