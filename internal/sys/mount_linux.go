// SPDX-License-Identifier: Apache-2.0

package sys

import (
	"bytes"
	"encoding/binary"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// MountStat is the kernel's answer about one mount. (statmount: Linux 6.8)
type MountStat struct {
	ID      uint64 // which no other mount has had
	Options string // of the filesystem, as the table of mounts has them; "" before Linux 6.11
}

// mountRequest is struct mnt_id_req of linux/mount.h.
type mountRequest struct {
	size, spare  uint32 // MNT_ID_REQ_SIZE_VER0: 24
	mount, param uint64
}

// Statmount asks of the mount that fd stands in, and no server for anything. What it reports
// is whole, or the error says why not.
func Statmount(fd int) (m MountStat, e Errno) {
	const (
		options = 0x80 // STATMOUNT_MNT_OPTS of linux/mount.h
		head    = 512  // of struct statmount, before its strings
	)
	id, e := UniqueMountID(fd)
	if e != 0 {
		return m, e
	}
	request := mountRequest{size: 24, mount: id, param: options}
	var buf [1024]byte // for longer options the answer is EOVERFLOW
	if _, _, e := unix.Syscall6(unix.SYS_STATMOUNT, uintptr(unsafe.Pointer(&request)), uintptr(unsafe.Pointer(&buf)), unsafe.Sizeof(buf), 0, 0, 0); e != 0 {
		return m, e
	}
	m.ID = id
	if answered := binary.NativeEndian.Uint64(buf[8:]); answered&options != 0 {
		at := min(head+int(binary.NativeEndian.Uint32(buf[4:])), len(buf))
		text, _, ended := bytes.Cut(buf[at:], []byte{0})
		if !ended {
			return m, syscall.EINVAL
		}
		m.Options = string(text)
	}
	return m, 0
}

// HasMounts reports whether anything is mounted in the mount with that ID, or was covered
// there. (listmount: Linux 6.8)
func HasMounts(id uint64) (bool, Errno) {
	request := mountRequest{size: 24, mount: id}
	var first uint64
	n, _, e := unix.Syscall6(unix.SYS_LISTMOUNT, uintptr(unsafe.Pointer(&request)), uintptr(unsafe.Pointer(&first)), 1, 0, 0, 0)
	return n > 0, e
}

// MountsChanged reports whether the mount namespace of fd, an open /proc/self/mountinfo, has
// changed since the last call for fd, or since it was opened.
func MountsChanged(fd int) bool {
	fds := [...]unix.PollFd{{Fd: int32(fd), Events: unix.POLLPRI}}
	n := 0
	e := again(func() (err error) { n, err = unix.Poll(fds[:], 0); return err })
	return n != 0 || e != 0
}
