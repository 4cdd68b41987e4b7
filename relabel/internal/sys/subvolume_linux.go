// SPDX-License-Identifier: Apache-2.0

package sys

import (
	"encoding/binary"
	"unsafe"
)

// Subvolume asks in which subvolume of btrfs the open file fd lies, and whether
// that is read-only by its own property, which no mount shows (Linux 4.18). ENOTTY
// is another filesystem's answer.
func Subvolume(fd int) (id uint64, readOnly bool, e Errno) {
	const (
		getInfo = 0x81f8943c    // BTRFS_IOC_GET_SUBVOL_INFO of linux/btrfs.h
		flags   = 8 + 256 + 3*8 // after treeid, name, parent_id, dirid and generation
		frozen  = 1             // BTRFS_ROOT_SUBVOL_RDONLY
	)
	var info [504]byte // struct btrfs_ioctl_get_subvol_info_args
	e = ioctl(fd, getInfo, unsafe.Pointer(&info))
	return binary.NativeEndian.Uint64(info[:]), binary.NativeEndian.Uint64(info[flags:])&frozen != 0, e
}
