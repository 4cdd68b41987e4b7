// SPDX-License-Identifier: Apache-2.0

package sys

import (
	"runtime"
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Way is a way to an attribute without opening what has it.
type Way uint8

// The ways of a walk, from the slowest to the fastest, and others.
const (
	// ByDescriptor is setxattr and getxattr of what dir itself is, which may be an O_PATH
	// descriptor, through the real /proc. Any kernel; four calls where the others make one.
	ByDescriptor Way = iota
	// ByThread is lsetxattr and lgetxattr of a bare name, by a thread with a working
	// directory of its own. Any kernel that lets the thread unshare it.
	ByThread
	// ByName is setxattrat and getxattrat of a name in dir (Linux 6.13).
	ByName
	// Opened is fsetxattr and fgetxattr of the open dir itself.
	Opened
)

func (w Way) String() string {
	return [...]string{ByDescriptor: "fd", ByThread: "fchdir", ByName: "setxattrat"}[w]
}

// xattrArgs is struct xattr_args of the *xattrat calls.
type xattrArgs struct {
	value uint64
	size  uint32
	flags uint32
}

// Attr names an attribute and holds the value to write. It belongs to one thread at a time.
type Attr struct {
	name  *byte
	value []byte
	set   xattrArgs
	get   xattrArgs
	how   unix.OpenHow // of pin
	fds   int32        // own.fds: an atomic is a call where nothing is optimized
	proc  [32]byte     // the path of a descriptor
	buf   []byte       // few or most
	few   [256]byte
}

// most is the kernel's own limit on a context, a page. Containers' labels have some 45
// bytes, and a page for each Attr is most of what a small tree allocates.
const most = 4096

// NewAttr is not inlined, so that the Attr lies in the heap and the addresses in it hold.
//
//go:noinline
func NewAttr(name, value string) *Attr {
	a := &Attr{name: Cname(name), fds: own.fds.Load()}
	a.buf = a.few[:]
	a.get.value = uint64(uintptr(unsafe.Pointer(&a.few)))
	a.SetValue(value)
	a.how = unix.OpenHow{Flags: OpenPath | unix.O_LARGEFILE, Resolve: Confined}
	copy(a.proc[:], procFD)
	return a
}

// SetValue has value written from now on. A read has room to compare with it, or without a value for
// most labels: the kernel clears as much memory as it is offered, 60 ns for a page.
func (a *Attr) SetValue(value string) {
	a.value = append(a.value[:0], value...)
	a.set = xattrArgs{value: uint64(uintptr(unsafe.Pointer(unsafe.SliceData(a.value)))), size: uint32(len(a.value))}
	if len(value)+2 > len(a.buf) {
		a.widen()
	}
	a.get.size = uint32(len(a.buf))
	if len(value) > 0 {
		a.get.size = min(a.get.size, uint32(len(value)+2+63)&^63)
	}
}

// widen makes room for all that a read may find.
func (a *Attr) widen() {
	if len(a.buf) < most {
		a.buf = make([]byte, most)
		a.get.value = uint64(uintptr(unsafe.Pointer(unsafe.SliceData(a.buf))))
	}
	a.get.size = most
}

// Value is what the last read found, n bytes long. It is overwritten by the next.
func (a *Attr) Value(n int) []byte { return a.buf[:n] }

// HasXattrat asks whether the kernel has setxattrat and getxattrat (Linux 6.13). EPERM, an old seccomp
// profile's answer to unknown calls, is a no.
func HasXattrat() bool {
	var none byte
	for _, call := range [...]uintptr{unix.SYS_SETXATTRAT, unix.SYS_GETXATTRAT} {
		if _, _, e := unix.Syscall6(call, ^uintptr(0), uintptr(unsafe.Pointer(&none)), 0, uintptr(unsafe.Pointer(&none)), 0, 0); e != unix.EINVAL {
			return false
		}
	}
	return true
}

// Get reads the attribute of name in dir, or of dir itself, and returns its length.
func (a *Attr) Get(way Way, dir int, name *byte) (int, Errno) {
	for {
		enter()
		n, e := a.read(way, dir, uintptr(unsafe.Pointer(name)))
		exit()
		runtime.KeepAlive(a)
		runtime.KeepAlive(name)
		if e != unix.ERANGE || a.get.size == most {
			return int(n), e
		}
		a.widen()
	}
}

// Set gives name in dir, or dir itself, the value.
func (a *Attr) Set(way Way, dir int, name *byte) Errno {
	enter()
	_, e := a.write(way, dir, uintptr(unsafe.Pointer(name)))
	exit()
	runtime.KeepAlive(a)
	runtime.KeepAlive(name)
	return e
}

// HasTrusted asks without side effects whether attributes in trusted.* are shown to this process:
// by the kernel's own check, for a capability may be held in another user namespace, or be
// refused by the policy. A yes holds for the process.
func HasTrusted() bool {
	if !trusted.Load() {
		fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC) // it has no attributes
		if err != nil {
			return false
		}
		defer Close(fd)
		trusted.Store(unix.Fremovexattr(fd, "trusted.fastlabel") == unix.ENOTSUP)
	}
	return trusted.Load()
}

var trusted atomic.Bool

// Setxattr gives the open fd an attribute. Without over it has none yet, else EEXIST.
func Setxattr(fd int, name string, value []byte, over bool) Errno {
	flags := unix.XATTR_CREATE
	if over {
		flags = 0
	}
	return again(func() error { return unix.Fsetxattr(fd, name, value, flags) })
}

// Removexattr takes an attribute off the open fd.
func Removexattr(fd int, name string) Errno {
	return again(func() error { return unix.Fremovexattr(fd, name) })
}

// read, write and what they call run between enter and exit: see row_linux.go.
//
//go:nosplit
func (a *Attr) read(way Way, dir int, name uintptr) (n uintptr, e Errno) {
	switch way {
	case ByName:
		return retried(unix.SYS_GETXATTRAT, uintptr(dir), name, unix.AT_SYMLINK_NOFOLLOW, uintptr(unsafe.Pointer(a.name)), uintptr(unsafe.Pointer(&a.get)), unsafe.Sizeof(a.get))
	case ByThread:
		return retried(unix.SYS_LGETXATTR, name, uintptr(unsafe.Pointer(a.name)), uintptr(a.get.value), uintptr(a.get.size), 0, 0)
	case Opened:
		return retried(unix.SYS_FGETXATTR, uintptr(dir), uintptr(unsafe.Pointer(a.name)), uintptr(a.get.value), uintptr(a.get.size), 0, 0)
	}
	if a.fds != 0 {
		return retried(unix.SYS_GETXATTRAT, uintptr(a.fds), a.pathOf(uintptr(dir))+uintptr(len(procFD)), 0, uintptr(unsafe.Pointer(a.name)), uintptr(unsafe.Pointer(&a.get)), unsafe.Sizeof(a.get))
	}
	return retried(unix.SYS_GETXATTR, a.pathOf(uintptr(dir)), uintptr(unsafe.Pointer(a.name)), uintptr(a.get.value), uintptr(a.get.size), 0, 0)
}

//go:nosplit
func (a *Attr) write(way Way, dir int, name uintptr) (n uintptr, e Errno) {
	switch way {
	case ByName:
		return retried(unix.SYS_SETXATTRAT, uintptr(dir), name, unix.AT_SYMLINK_NOFOLLOW, uintptr(unsafe.Pointer(a.name)), uintptr(unsafe.Pointer(&a.set)), unsafe.Sizeof(a.set))
	case ByThread:
		return retried(unix.SYS_LSETXATTR, name, uintptr(unsafe.Pointer(a.name)), uintptr(a.set.value), uintptr(a.set.size), 0, 0)
	case Opened:
		return retried(unix.SYS_FSETXATTR, uintptr(dir), uintptr(unsafe.Pointer(a.name)), uintptr(a.set.value), uintptr(a.set.size), 0, 0)
	}
	if a.fds != 0 {
		return retried(unix.SYS_SETXATTRAT, uintptr(a.fds), a.pathOf(uintptr(dir))+uintptr(len(procFD)), 0, uintptr(unsafe.Pointer(a.name)), uintptr(unsafe.Pointer(&a.set)), unsafe.Sizeof(a.set))
	}
	return retried(unix.SYS_SETXATTR, a.pathOf(uintptr(dir)), uintptr(unsafe.Pointer(a.name)), uintptr(a.set.value), uintptr(a.set.size), 0, 0)
}

// pin is Openat2.
//
//go:nosplit
func (a *Attr) pin(dir int, name uintptr) (fd uintptr, e Errno) {
	for tries := 0; ; tries++ {
		fd, e = retried(unix.SYS_OPENAT2, uintptr(dir), name, uintptr(unsafe.Pointer(&a.how)), unix.SizeofOpenHow, 0, 0)
		if e != unix.EAGAIN || tries == 128 {
			return fd, e
		}
	}
}

// procFD begins the path of a descriptor.
const procFD = "/proc/self/fd/"

// own has the descriptors that OwnProc opened: the top of its proc filesystem, and its directory
// of descriptors. At 0, /proc is used.
var own struct{ top, fds atomic.Int32 }

// OwnProc mounts a proc filesystem nowhere, for a process whose root directory has none. Its
// descriptors are labelled through it from then on (Linux 6.13, CAP_SYS_ADMIN).
var OwnProc = sync.OnceValue(func() Errno {
	if !HasXattrat() {
		return unix.ENOSYS
	}
	return again(func() error {
		config, err := unix.Fsopen("proc", unix.FSOPEN_CLOEXEC)
		if err != nil {
			return err
		}
		defer unix.Close(config)
		if err := unix.FsconfigCreate(config); err != nil {
			return err
		}
		top, err := unix.Fsmount(config, unix.FSMOUNT_CLOEXEC, 0)
		if err != nil {
			return err
		}
		fds, err := unix.Openat(top, "self/fd", OpenPath|unix.O_DIRECTORY, 0)
		if err == nil {
			own.top.Store(int32(top))
			own.fds.Store(int32(fds))
		}
		return err
	})
})

// ProcDir returns the directory and the path in it that lead to /proc, with a slash behind it.
func ProcDir() (dir int, path string) {
	if top := own.top.Load(); top != 0 {
		return int(top), ""
	}
	return AtFdcwd, "/proc/"
}

// pathOf writes fd, NUL-terminated, behind procFD.
//
//go:nosplit
func (a *Attr) pathOf(fd uintptr) uintptr {
	number, end := uint32(fd), len(procFD)+1
	for rest := number; rest > 9; rest /= 10 {
		end++
	}
	a.proc[end] = 0
	for i := end - 1; i >= len(procFD); i-- {
		a.proc[i] = byte('0' + number%10)
		number /= 10
	}
	return uintptr(unsafe.Pointer(&a.proc))
}
