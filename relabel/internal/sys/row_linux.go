// SPDX-License-Identifier: Apache-2.0

package sys

import (
	"runtime"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Telling the scheduler before and after each system call costs 175 ns, a
// quarter of what the call itself takes where all is in memory. Not telling it
// is no way out: a call that hangs, on a dead server or a frozen filesystem,
// would keep its processor and, at the next garbage collection, stop the whole
// program. So it is told once a row. In between no Go code may run that grows
// the stack, writes a pointer or can be preempted, and that is all that the
// functions of this file do. The one that tells the scheduler may itself grow the
// stack, before it does; what it calls in between is nosplit, and the linker adds up
// the frames of that, which are large without optimization.

// RowLen is the longest row: it makes the 175 ns six, and as many calls of a
// network filesystem are still answered within a second after a stop.
const RowLen = 32

// Row is names in one directory that are labelled in one go, by the goroutine whose
// row it is. Any other may set Stop and read Step.
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

// Calling returns the name whose call is under way, and whether that is a write. It
// returns -1 before the first call.
func (r *Row) Calling() (name int, write bool) {
	step := int(r.Step.Load())
	return step/2 - 1, step%2 == 1
}

// Way is how a name's attribute is reached.
type Way uint8

// The ways that need not open the entry.
const (
	// ByName is setxattrat and getxattrat in the directory.
	ByName Way = iota
	// ByCwd is lsetxattr and lgetxattr in the thread's working directory.
	ByCwd
	// ByPin is setxattr and getxattr by an O_PATH descriptor, opened by openat2 inside
	// the mount that the directory is in. Elsewhere nothing is labelled: EXDEV.
	ByPin
	// ByNameOrPin reads ByName and writes ByPin.
	ByNameOrPin
)

// Order says what is to be done with each name.
type Order struct {
	Way Way
	Dir int // for ByName
	// Blind writes without reading, but where Turn, which counts names, is
	// a multiple of Check. The first that is found right ends it.
	Blind       bool
	Turn, Check int
	// Look writes nothing: the first that differs ends it, and is counted as Wrong.
	Look bool
}

// Trouble is why a row ended before its end.
type Trouble uint8

// What ends a row.
const (
	None     Trouble = iota
	Stopped          // Stop was set
	ReadErr          // Errno is what a read answered
	WriteErr         // Errno is what a write answered
)

// Done is what became of a row.
type Done struct {
	Right, Written int
	Wrong          int // how many differed in a row, at the end
	Turn           int
	Trouble        Trouble // with the name of the last call
	Errno          Errno
}

// Mend goes through the names from..to of the row. A name without the
// attribute, or with a longer one than ours, differs.
//
//go:norace
//go:nocheckptr
func (a *Attr) Mend(r *Row, from, to int, o Order) (d Done) {
	base := unsafe.Pointer(r.Base)
	want := unsafe.Pointer(unsafe.SliceData(a.value))
	size := uintptr(len(a.value))
	d.Turn = o.Turn
	enter()
	for i := from; i < to; i++ {
		if r.stopped() {
			d.Trouble = Stopped
			break
		}
		name := uintptr(base) + uintptr(r.At[i]) + uintptr(r.Head)
		read := !o.Blind
		if o.Blind {
			d.Turn++
			read = d.Turn%o.Check == 0
		}
		if read {
			r.calls(i, 0)
			n, e := a.read(o.Way, o.Dir, name)
			if e == 0 && equal(unsafe.Pointer(unsafe.SliceData(a.buf)), n, want, size) {
				d.Right++
				d.Wrong = 0
				if o.Blind {
					break
				}
				continue
			}
			if e != 0 && e != unix.ENODATA && e != unix.ERANGE {
				d.Trouble, d.Errno = ReadErr, e
				break
			}
			if d.Wrong++; o.Look {
				break
			}
		}
		r.calls(i, 1)
		if e := a.write(o.Way, o.Dir, name); e != 0 {
			d.Trouble, d.Errno = WriteErr, e
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
//go:norace
//go:nocheckptr
func (r *Row) stopped() bool { return atomic.LoadUint32((*uint32)(unsafe.Pointer(r.Stop))) != 0 }

// calls sets Step to a read (0) or a write (1) of name i.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (r *Row) calls(i int, write uint32) {
	atomic.StoreUint32((*uint32)(unsafe.Pointer(&r.Step)), uint32(i+1)*2+write)
}

//go:nosplit
//go:norace
//go:nocheckptr
func (a *Attr) read(way Way, dir int, name uintptr) (uintptr, Errno) {
	switch way {
	case ByName, ByNameOrPin:
		return retried(unix.SYS_GETXATTRAT, uintptr(dir), name, unix.AT_SYMLINK_NOFOLLOW, uintptr(unsafe.Pointer(a.name)), uintptr(unsafe.Pointer(&a.get)), unsafe.Sizeof(a.get))
	case ByPin:
		fd, e := a.pin(dir, name)
		if e != 0 {
			return 0, e
		}
		n, e := retried(unix.SYS_GETXATTR, uintptr(unsafe.Pointer(endPath(&a.proc, uint32(fd)))), uintptr(unsafe.Pointer(a.name)), uintptr(a.get.value), uintptr(a.get.size), 0, 0)
		closed(fd)
		return n, e
	}
	return retried(unix.SYS_LGETXATTR, name, uintptr(unsafe.Pointer(a.name)), uintptr(a.get.value), uintptr(a.get.size), 0, 0)
}

//go:nosplit
//go:norace
//go:nocheckptr
func (a *Attr) write(way Way, dir int, name uintptr) (e Errno) {
	switch way {
	case ByName:
		_, e = retried(unix.SYS_SETXATTRAT, uintptr(dir), name, unix.AT_SYMLINK_NOFOLLOW, uintptr(unsafe.Pointer(a.name)), uintptr(unsafe.Pointer(&a.set)), unsafe.Sizeof(a.set))
	case ByCwd:
		_, e = retried(unix.SYS_LSETXATTR, name, uintptr(unsafe.Pointer(a.name)), uintptr(a.set.value), uintptr(a.set.size), 0, 0)
	default:
		var fd uintptr
		if fd, e = a.pin(dir, name); e == 0 {
			_, e = retried(unix.SYS_SETXATTR, uintptr(unsafe.Pointer(endPath(&a.proc, uint32(fd)))), uintptr(unsafe.Pointer(a.name)), uintptr(a.set.value), uintptr(a.set.size), 0, 0)
			closed(fd)
		}
	}
	return e
}

// pin opens name in dir by openat2. EAGAIN, the answer where a rename crossed the look-up,
// is retried a bounded number of times.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (a *Attr) pin(dir int, name uintptr) (fd uintptr, e Errno) {
	for tries := 0; ; tries++ {
		fd, e = retried(unix.SYS_OPENAT2, uintptr(dir), name, uintptr(unsafe.Pointer(&a.how)), unix.SizeofOpenHow, 0, 0)
		if e != unix.EAGAIN || tries == 128 {
			return fd, e
		}
	}
}

// equal compares the n bytes at have, with or without one NUL behind them, with
// those that are wanted.
//
//go:nosplit
//go:norace
//go:nocheckptr
func equal(have unsafe.Pointer, n uintptr, want unsafe.Pointer, size uintptr) bool {
	if n == size+1 && *(*byte)(unsafe.Add(have, size)) == 0 {
		n--
	}
	return n == size && unsafe.String((*byte)(have), n) == unsafe.String((*byte)(want), n)
}
