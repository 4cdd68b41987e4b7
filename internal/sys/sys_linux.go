// SPDX-License-Identifier: Apache-2.0

package sys

import (
	"strconv"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Errno is the kernel's answer; 0 is success.
type Errno = syscall.Errno

// retry makes a system call, again if a signal interrupted it. Nothing of it escapes:
// a call allocates nothing (TestAllocations). Rows have their own, retried.
func retry(call func() (uintptr, uintptr, Errno)) (int, Errno) {
	for {
		n, _, e := call()
		if e != unix.EINTR {
			return int(n), e
		}
	}
}

// again makes a call of x/sys, as retry.
func again(call func() error) Errno {
	_, e := retry(func() (uintptr, uintptr, Errno) { return 0, 0, bare(call()) })
	return e
}

// ioctl has arg read or written by the kernel, as request defines it.
func ioctl(fd int, request uintptr, arg unsafe.Pointer) Errno {
	_, e := retry(func() (uintptr, uintptr, Errno) {
		return unix.Syscall(unix.SYS_IOCTL, uintptr(fd), request, uintptr(arg))
	})
	return e
}

// bare is the errno that x/sys returns as an error.
func bare(err error) Errno {
	e, _ := err.(Errno) //nolint:errorlint // it is not wrapped
	return e
}

// AtFdcwd stands for the working directory of the calling thread.
const AtFdcwd = unix.AT_FDCWD

// Flags for Openat and Openat2, by what they are used for.
const (
	// OpenPath names an entry without opening it, whatever its kind.
	OpenPath = unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC
	// OpenPathDir names a directory. What is to be mounted there is mounted.
	OpenPathDir = OpenPath | unix.O_DIRECTORY
	// OpenDir opens a directory for reading; the kernel refuses anything else before it is opened.
	OpenDir = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_CLOEXEC
	// NoAtime spares the write of an access time; EPERM for a stranger without CAP_FOWNER.
	NoAtime = unix.O_NOATIME
	// OpenLock opens a lock file of our own.
	OpenLock = unix.O_RDWR | unix.O_CREAT | unix.O_NOFOLLOW | unix.O_CLOEXEC
	// OpenRead opens a file of /proc.
	OpenRead = unix.O_RDONLY | unix.O_CLOEXEC
	// OpenDisk opens a block device for WillNeed, and waits for none to be ready.
	OpenDisk = unix.O_RDONLY | unix.O_NONBLOCK | unix.O_NOCTTY | unix.O_CLOEXEC
)

// Confined resolves one name in one directory of one mount, and follows no link.
const Confined = unix.RESOLVE_BENEATH | unix.RESOLVE_NO_XDEV | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS

// Openat opens name, relative to dir.
func Openat(dir int, name *byte, flags int, mode uint32) (int, Errno) {
	return retry(func() (uintptr, uintptr, Errno) {
		return unix.Syscall6(unix.SYS_OPENAT, uintptr(dir), uintptr(unsafe.Pointer(name)), uintptr(flags|unix.O_LARGEFILE), uintptr(mode), 0, 0)
	})
}

// Openat2 is Openat with restrictions on how name is resolved (Linux 5.6). EAGAIN, when a rename
// crossed the look-up, is retried a bounded number of times.
func Openat2(dir int, name *byte, flags int, resolve uint64) (int, Errno) {
	how := unix.OpenHow{Flags: uint64(flags | unix.O_LARGEFILE), Resolve: resolve}
	for tries := 0; ; tries++ {
		fd, e := retry(func() (uintptr, uintptr, Errno) {
			return unix.Syscall6(unix.SYS_OPENAT2, uintptr(dir), uintptr(unsafe.Pointer(name)), uintptr(unsafe.Pointer(&how)), unix.SizeofOpenHow, 0, 0)
		})
		if e != unix.EAGAIN || tries == 128 {
			return fd, e
		}
	}
}

// Reopen opens for reading what the O_PATH descriptor fd names, and waits for nobody: the
// other end of a FIFO, or who has a lease on a file.
func Reopen(fd int) (int, Errno) {
	if fds := own.fds.Load(); fds != 0 {
		return Openat(int(fds), Cname(strconv.Itoa(fd)), OpenDisk, 0)
	}
	return Openat(AtFdcwd, Cname(procFD+strconv.Itoa(fd)), OpenDisk, 0)
}

// HasOpenat2 asks whether the kernel (and a seccomp profile before it) lets openat2 through.
func HasOpenat2() bool {
	_, _, e := unix.Syscall6(unix.SYS_OPENAT2, ^uintptr(0), 0, 0, 0, 0, 0)
	return e == unix.EINVAL
}

// Close closes fd. The descriptor is gone whatever the answer, EINTR too.
func Close(fd int) Errno { return bare(unix.Close(fd)) }

// OpenTree makes a private clone of the mount that fd stands in, rooted at fd's directory and without
// what is mounted beneath it (Linux 5.2, CAP_SYS_ADMIN).
func OpenTree(fd int) (int, Errno) {
	return retry(func() (uintptr, uintptr, Errno) {
		return unix.Syscall(unix.SYS_OPEN_TREE, uintptr(fd), uintptr(unsafe.Pointer(&empty)), unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_EMPTY_PATH)
	})
}

// MountSeclude takes the clone at fd out of mount propagation and sets
// nosuid, nodev, noexec and nosymfollow on it (mount_setattr: Linux 5.12; nosymfollow
// there: 5.14).
func MountSeclude(fd int) Errno {
	attr := unix.MountAttr{
		Attr_set:    unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV | unix.MOUNT_ATTR_NOEXEC | unix.MOUNT_ATTR_NOSYMFOLLOW,
		Propagation: unix.MS_PRIVATE,
	}
	return again(func() error { return unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH, &attr) })
}

// Syncfs writes the filesystem that fd stands in to its disk.
func Syncfs(fd int) Errno { return again(func() error { return unix.Syncfs(fd) }) }

// Fsync writes what belongs to fd, its attributes included, to its disk.
func Fsync(fd int) Errno { return again(func() error { return unix.Fsync(fd) }) }

// TryLock locks the byte at of the file fd for the open file, or answers EAGAIN.
func TryLock(fd int, at int64) Errno { return lock(fd, at, unix.F_WRLCK) }

// Unlock unlocks it, also where another process has the open file too.
func Unlock(fd int, at int64) Errno { return lock(fd, at, unix.F_UNLCK) }

func lock(fd int, at int64, kind int16) Errno {
	return bare(unix.FcntlFlock(uintptr(fd), unix.F_OFD_SETLK, &unix.Flock_t{Type: kind, Start: at, Len: 1}))
}

// Readlinkat reads the link name in dir into buf.
func Readlinkat(dir int, name string, buf []byte) (int, Errno) {
	n, err := unix.Readlinkat(dir, name, buf)
	return n, bare(err)
}

// UnshareFS gives the calling thread, which its goroutine never leaves, its own working directory.
func UnshareFS() Errno { return bare(unix.Unshare(unix.CLONE_FS)) }

// HasUnshare asks without side effects whether a seccomp profile lets unshare through.
func HasUnshare() bool { return unix.Unshare(0) == nil }

// MainThread reports whether the calling thread is the process's first.
func MainThread() bool { return unix.Gettid() == unix.Getpid() }

// Fchdir moves the calling thread, and all that share its working directory, into dir.
func Fchdir(dir int) Errno { return bare(unix.Fchdir(dir)) }

// FSType is the magic number of the filesystem that fd stands in.
func FSType(fd int) (int64, Errno) {
	st, e := statfs(fd)
	return int64(st.Type), e
}

// FSTypeAt is FSType of what path leads to.
func FSTypeAt(path string) (int64, Errno) {
	var st unix.Statfs_t
	e := again(func() error { return unix.Statfs(path, &st) })
	return int64(st.Type), e
}

// FSID is the filesystem's own number, as statfs has it.
func FSID(fd int) (uint64, Errno) {
	st, e := statfs(fd)
	return uint64(uint32(st.Fsid.Val[0]))<<32 | uint64(uint32(st.Fsid.Val[1])), e
}

// SameSize reports whether two descriptors are in filesystems of one size.
func SameSize(a, b int) bool {
	x, e := statfs(a)
	y, f := statfs(b)
	return e == 0 && f == 0 && x.Bsize == y.Bsize && x.Blocks == y.Blocks
}

func statfs(fd int) (st unix.Statfs_t, e Errno) {
	e = again(func() error { return unix.Fstatfs(fd, &st) })
	return st, e
}

// The filesystems that the engine knows by their magic numbers.
const (
	Proc    = unix.PROC_SUPER_MAGIC
	Ext4    = unix.EXT4_SUPER_MAGIC
	XFS     = unix.XFS_SUPER_MAGIC
	Btrfs   = unix.BTRFS_SUPER_MAGIC
	Overlay = unix.OVERLAYFS_SUPER_MAGIC
	Tmpfs   = unix.TMPFS_MAGIC
	// Selinux is the filesystem of the kernel's SELinux interface.
	Selinux = unix.SELINUX_MAGIC
)

// TrueInodes reports whether directory records hold the inode numbers that files have: overlayfs,
// FUSE and network filesystems do not promise it, and on btrfs the root of a subvolume has another.
func TrueInodes(kind int64) bool {
	return kind == unix.EXT4_SUPER_MAGIC || kind == unix.XFS_SUPER_MAGIC || kind == unix.TMPFS_MAGIC
}

// Served reports whether the calls of a filesystem wait for a server, or for
// peers: FUSE, network and cluster filesystems.
func Served(kind int64) bool {
	switch kind {
	case unix.FUSE_SUPER_MAGIC, unix.NFS_SUPER_MAGIC, unix.CIFS_SUPER_MAGIC, unix.SMB2_SUPER_MAGIC, unix.SMB_SUPER_MAGIC,
		unix.CEPH_SUPER_MAGIC, unix.V9FS_MAGIC, unix.AFS_FS_MAGIC, unix.AFS_SUPER_MAGIC, unix.CODA_SUPER_MAGIC, unix.OCFS2_SUPER_MAGIC,
		0x01161970, // GFS2_MAGIC of linux/gfs2_ondisk.h
		0x0bd00bd0: // Lustre's LL_SUPER_MAGIC
		return true
	}
	return false
}

// Stale reports whether a label that is read may be one that another machine has since replaced: of
// NFS SELinux keeps what it last heard until somebody asks the server. See Refresh.
func Stale(kind int64) bool { return kind == unix.NFS_SUPER_MAGIC }

// Rewind sets the open directory fd to a position.
func Rewind(fd int, position int64) Errno {
	_, err := unix.Seek(fd, position, unix.SEEK_SET)
	return bare(err)
}

// SharesAll reports whether the calling thread has the descriptors, the root directory and the
// working directory of the process's first one. It is false where the kernel does not report it
// (kcmp: CONFIG_KCMP).
func SharesAll() bool {
	const files, fs = 2, 3 // KCMP_FILES, KCMP_FS
	first, this := uintptr(unix.Getpid()), uintptr(unix.Gettid())
	for _, what := range [...]uintptr{files, fs} {
		if differs, _, e := unix.RawSyscall6(unix.SYS_KCMP, first, this, what, 0, 0, 0); e != 0 || differs != 0 {
			return false
		}
	}
	return true
}

// OpenFiles is the soft limit on open files.
func OpenFiles() uint64 {
	var r unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &r) != nil {
		return 1024 // the kernel's own default
	}
	return r.Cur
}

// Usage is the processor time that the process has had, and how much it has had disks
// read, in 512 bytes; 0 where the kernel does not count that.
func Usage() (cpu time.Duration, read int64) {
	var u unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), int64(u.Inblock) //nolint:unconvert // 32 bits on some architectures
}

// Dup duplicates the descriptor of.
func Dup(of uintptr) (fd int, e Errno) {
	fd, err := unix.FcntlInt(of, unix.F_DUPFD_CLOEXEC, 0)
	return fd, bare(err)
}
