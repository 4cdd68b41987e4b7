// SPDX-License-Identifier: Apache-2.0

package sys

import (
	"bytes"
	"encoding/binary"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// MountOptions asks how the filesystem that fd stands in is mounted: its own
// options, with commas between them, as the table of mounts has them. They are
// whole, or the error says why not. (statmount: Linux 6.8, options 6.11)
func MountOptions(fd int) (string, Errno) {
	const (
		wantOptions = 0x80     // STATMOUNT_MNT_OPTS of linux/mount.h
		head        = 512      // of struct statmount, before its strings
		most        = 16 << 10 // of both
	)
	var st unix.Statx_t
	if e := fill(&st, fd, &empty, unix.AT_EMPTY_PATH, unix.STATX_MNT_ID_UNIQUE); e != 0 {
		return "", e
	}
	if st.Mask&unix.STATX_MNT_ID_UNIQUE == 0 {
		return "", syscall.ENOSYS
	}
	request := struct {
		size, spare uint32
		mount, mask uint64
	}{size: 24, mount: st.Mnt_id, mask: wantOptions}
	buf := make([]byte, most)
	_, _, e := unix.Syscall6(unix.SYS_STATMOUNT, uintptr(unsafe.Pointer(&request)), uintptr(unsafe.Pointer(unsafe.SliceData(buf))), most, 0, 0, 0)
	if e != 0 {
		return "", e
	}
	if binary.NativeEndian.Uint64(buf[8:])&wantOptions == 0 {
		return "", syscall.ENOSYS
	}
	at := head + int(binary.NativeEndian.Uint32(buf[4:]))
	if at >= most {
		return "", syscall.EINVAL
	}
	text, _, ended := bytes.Cut(buf[at:], []byte{0})
	if !ended {
		return "", syscall.EINVAL
	}
	return string(text), 0
}
