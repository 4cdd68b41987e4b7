// SPDX-License-Identifier: Apache-2.0

package sys

import (
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// RemovexattrFd takes the attribute off the entry that fd names, also an O_PATH
// descriptor, through the real /proc.
func (a *Attr) RemovexattrFd(fd int) Errno {
	var p [32]byte
	_, e := retry(func() (uintptr, uintptr, Errno) {
		return unix.Syscall(unix.SYS_REMOVEXATTR, uintptr(unsafe.Pointer(procPath(&p, fd))), uintptr(unsafe.Pointer(a.name)), 0)
	})
	return e
}

// Birth is when the file that fd names was created; zero where the filesystem
// does not say, or a seccomp profile refuses to ask.
func Birth(fd int) (time.Time, Errno) {
	var st unix.Statx_t
	e := fill(&st, fd, &empty, unix.AT_EMPTY_PATH|unix.AT_SYMLINK_NOFOLLOW|unix.AT_NO_AUTOMOUNT, unix.STATX_BTIME)
	switch {
	case e == unix.EPERM, e == unix.ENOSYS, e == 0 && st.Mask&unix.STATX_BTIME == 0:
		return time.Time{}, 0
	case e != 0:
		return time.Time{}, e
	}
	return time.Unix(st.Btime.Sec, int64(st.Btime.Nsec)), 0
}
