// SPDX-License-Identifier: Apache-2.0

package sys

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// xattrArgs is struct xattr_args of the *xattrat calls.
type xattrArgs struct {
	value uint64
	size  uint32
	flags uint32
}

// Attr names an attribute and holds the value to write, with the memory that
// the kernel reads while a call runs. It belongs to one thread at a time.
type Attr struct {
	name  *byte
	value []byte
	set   xattrArgs
	get   xattrArgs
	how   unix.OpenHow // of ByPin
	proc  [32]byte     // the path of what is pinned
	brief bool
	buf   []byte // few or most
	few   [256]byte
}

// most is the kernel's own limit on a context, a page. Containers' labels have some 45
// bytes, and a page for each Attr is most of what a small tree allocates.
const most = 4096

// NewAttr readies the attribute name for writing value. It is not inlined, so
// that the Attr lies in the heap and the addresses in it hold.
//
//go:noinline
func NewAttr(name string, value []byte) *Attr {
	a := &Attr{name: Cname(name), value: value}
	a.set = xattrArgs{value: uint64(uintptr(unsafe.Pointer(unsafe.SliceData(a.value)))), size: uint32(len(a.value))}
	a.room(a.few[:])
	if len(value)+2 > len(a.few) {
		a.Wide()
	}
	a.how = unix.OpenHow{Flags: OpenPath | unix.O_LARGEFILE, Resolve: Confined}
	copy(a.proc[:], procFD)
	return a
}

// room has what is found put into buf.
func (a *Attr) room(buf []byte) {
	a.buf = buf
	a.get = xattrArgs{value: uint64(uintptr(unsafe.Pointer(unsafe.SliceData(buf)))), size: uint32(len(buf))}
}

// grow makes room for all that an attribute may have, after the answer e. It reports whether
// the call is to be made again.
func (a *Attr) grow(e Errno) bool {
	if e != unix.ERANGE || a.brief || len(a.buf) == most {
		return false
	}
	a.Wide()
	return true
}

// Wide says that what is found is needed whole, also by a row and a visit.
func (a *Attr) Wide() {
	if len(a.buf) < most {
		a.room(make([]byte, most))
	}
}

// Brief says that what is found will only be compared with the value: one that
// is much longer may be answered by ERANGE. The kernel clears as much memory as
// it is offered, 60 ns for a page.
func (a *Attr) Brief() {
	a.brief = true
	a.get.size = min(uint32(len(a.value)+2+63)&^63, uint32(len(a.buf)))
}

// Value is what the last successful get found, n bytes long. It is
// overwritten by the next.
func (a *Attr) Value(n int) []byte { return a.buf[:n] }

// HasXattrat asks without side effects whether the kernel has setxattrat and
// getxattrat (Linux 6.13). EPERM, an old seccomp profile's answer to unknown
// calls, is a no.
func HasXattrat() bool {
	var none byte
	for _, call := range [...]uintptr{unix.SYS_SETXATTRAT, unix.SYS_GETXATTRAT} {
		if _, _, e := unix.Syscall6(call, ^uintptr(0), uintptr(unsafe.Pointer(&none)), 0, uintptr(unsafe.Pointer(&none)), 0, 0); e != unix.EINVAL {
			return false
		}
	}
	return true
}

// Setxattrat writes the attribute of name in dir. name is not opened, and not
// followed if it is a link.
func (a *Attr) Setxattrat(dir int, name *byte) Errno {
	_, e := retry(func() (uintptr, uintptr, Errno) {
		return unix.Syscall6(unix.SYS_SETXATTRAT, uintptr(dir), uintptr(unsafe.Pointer(name)), unix.AT_SYMLINK_NOFOLLOW, uintptr(unsafe.Pointer(a.name)), uintptr(unsafe.Pointer(&a.set)), unsafe.Sizeof(a.set))
	})
	return e
}

// Getxattrat reads the attribute of name in dir.
func (a *Attr) Getxattrat(dir int, name *byte) (n int, e Errno) {
	for again := true; again; again = a.grow(e) {
		n, e = a.getxattrat(dir, name)
	}
	return n, e
}

func (a *Attr) getxattrat(dir int, name *byte) (int, Errno) {
	return retry(func() (uintptr, uintptr, Errno) {
		return unix.Syscall6(unix.SYS_GETXATTRAT, uintptr(dir), uintptr(unsafe.Pointer(name)), unix.AT_SYMLINK_NOFOLLOW, uintptr(unsafe.Pointer(a.name)), uintptr(unsafe.Pointer(&a.get)), unsafe.Sizeof(a.get))
	})
}

// Lsetxattr writes the attribute of name in the thread's working directory.
func (a *Attr) Lsetxattr(name *byte) Errno {
	return a.setPath(unix.SYS_LSETXATTR, name)
}

// Lgetxattr reads the attribute of name in the thread's working directory.
func (a *Attr) Lgetxattr(name *byte) (int, Errno) {
	return a.getPath(unix.SYS_LGETXATTR, name)
}

// SetxattrFd writes the attribute of the entry that fd names, also an O_PATH
// descriptor, through the real /proc.
func (a *Attr) SetxattrFd(fd int) Errno {
	var p [32]byte
	return a.setPath(unix.SYS_SETXATTR, procPath(&p, fd))
}

// GetxattrFd reads the attribute of the entry that fd names, as SetxattrFd.
func (a *Attr) GetxattrFd(fd int) (int, Errno) {
	var p [32]byte
	return a.getPath(unix.SYS_GETXATTR, procPath(&p, fd))
}

// Fsetxattr writes the attribute of the open directory or file fd.
func (a *Attr) Fsetxattr(fd int) Errno { return a.setOpen(fd, 0) }

// Fcreatexattr is Fsetxattr where there is no such attribute yet, else EEXIST.
func (a *Attr) Fcreatexattr(fd int) Errno { return a.setOpen(fd, unix.XATTR_CREATE) }

func (a *Attr) setOpen(fd, flags int) Errno {
	_, e := retry(func() (uintptr, uintptr, Errno) {
		return unix.Syscall6(unix.SYS_FSETXATTR, uintptr(fd), uintptr(unsafe.Pointer(a.name)), uintptr(unsafe.Pointer(unsafe.SliceData(a.value))), uintptr(len(a.value)), uintptr(flags), 0)
	})
	return e
}

// Fgetxattr reads the attribute of the open directory or file fd.
func (a *Attr) Fgetxattr(fd int) (n int, e Errno) {
	for again := true; again; again = a.grow(e) {
		n, e = a.fgetxattr(fd)
	}
	return n, e
}

func (a *Attr) fgetxattr(fd int) (int, Errno) {
	return retry(func() (uintptr, uintptr, Errno) {
		return unix.Syscall6(unix.SYS_FGETXATTR, uintptr(fd), uintptr(unsafe.Pointer(a.name)), uintptr(unsafe.Pointer(unsafe.SliceData(a.buf))), uintptr(a.get.size), 0, 0)
	})
}

// Fremovexattr takes the attribute off the open directory or file fd.
func (a *Attr) Fremovexattr(fd int) Errno {
	_, e := retry(func() (uintptr, uintptr, Errno) {
		return unix.Syscall(unix.SYS_FREMOVEXATTR, uintptr(fd), uintptr(unsafe.Pointer(a.name)), 0)
	})
	return e
}

// RemovexattrFd takes the attribute off the entry that fd names, also an O_PATH
// descriptor, through the real /proc.
func (a *Attr) RemovexattrFd(fd int) Errno {
	var p [32]byte
	_, e := retry(func() (uintptr, uintptr, Errno) {
		return unix.Syscall(unix.SYS_REMOVEXATTR, uintptr(unsafe.Pointer(procPath(&p, fd))), uintptr(unsafe.Pointer(a.name)), 0)
	})
	return e
}

func (a *Attr) setPath(call uintptr, path *byte) Errno {
	_, e := retry(func() (uintptr, uintptr, Errno) {
		return unix.Syscall6(call, uintptr(unsafe.Pointer(path)), uintptr(unsafe.Pointer(a.name)), uintptr(unsafe.Pointer(unsafe.SliceData(a.value))), uintptr(len(a.value)), 0, 0)
	})
	return e
}

func (a *Attr) getPath(call uintptr, path *byte) (n int, e Errno) {
	for again := true; again; again = a.grow(e) {
		n, e = retry(func() (uintptr, uintptr, Errno) {
			return unix.Syscall6(call, uintptr(unsafe.Pointer(path)), uintptr(unsafe.Pointer(a.name)), uintptr(unsafe.Pointer(unsafe.SliceData(a.buf))), uintptr(a.get.size), 0, 0)
		})
	}
	return n, e
}

// procFD begins the path of a descriptor.
const procFD = "/proc/self/fd/"

// procPath writes /proc/self/fd/N, NUL-terminated, into p.
func procPath(p *[32]byte, fd int) *byte {
	copy(p[:], procFD)
	return endPath(p, uint32(fd))
}

// endPath writes fd, NUL-terminated, behind procFD in p.
//
//go:nosplit
//go:norace
//go:nocheckptr
func endPath(p *[32]byte, fd uint32) *byte {
	var digits [10]byte
	i := len(digits)
	for {
		i--
		digits[i] = byte('0' + fd%10)
		if fd /= 10; fd == 0 {
			break
		}
	}
	n := len(procFD)
	for ; i < len(digits); i++ {
		p[n] = digits[i]
		n++
	}
	p[n] = 0
	return &p[0]
}
