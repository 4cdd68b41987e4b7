// SPDX-License-Identifier: Apache-2.0

package sys

import (
	"encoding/binary"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Extent is a part of a file on its disk, in bytes.
type Extent struct{ At, Len int64 }

// Extents asks where the open file fd lies, as far as into has room, and returns how
// many there are.
func Extents(fd int, into *[16]Extent) (int, Errno) {
	type extent struct {
		Logical, Physical, Length uint64
		_                         [2]uint64
		Flags                     uint32
		_                         [3]uint32
	}
	const (
		fiemap = 0xc020660b // FS_IOC_FIEMAP of linux/fs.h
		// What has no place on the disk, or shares a block: FIEMAP_EXTENT_UNKNOWN,
		// _ENCODED, _NOT_ALIGNED.
		elsewhere = 0x2 | 0x8 | 0x100
	)
	var ask struct { // struct fiemap
		Start, Length        uint64
		Flags, Mapped, Count uint32
		_                    uint32
		Extents              [len(into)]extent
	}
	ask.Length, ask.Count = ^uint64(0), uint32(len(into))
	if e := ioctl(fd, fiemap, unsafe.Pointer(&ask)); e != 0 {
		return 0, e
	}
	n := 0
	for _, x := range ask.Extents[:min(ask.Mapped, ask.Count)] {
		if x.Flags&elsewhere == 0 {
			into[n] = Extent{int64(x.Physical), int64(x.Length)}
			n++
		}
	}
	return n, 0
}

// WillNeed has the kernel begin to read a part of the open file or device fd.
func WillNeed(fd int, at, length int64) Errno {
	return bare(unix.Fadvise(fd, at, length, unix.FADV_WILLNEED))
}

// HasJournal asks whether the ext4 that the open fd is in has a journal. ENODEV: it has none.
// Other errors say nothing: before Linux 5.14, and without CAP_SYS_ADMIN.
func HasJournal(fd int) Errno {
	const (
		checkpoint = 0x4004662b // EXT4_IOC_CHECKPOINT of linux/ext4.h
		dryRun     = 4          // EXT4_IOC_CHECKPOINT_FLAG_DRY_RUN
	)
	flags := uint32(dryRun)
	return ioctl(fd, checkpoint, unsafe.Pointer(&flags))
}

// EndTransaction ends the transaction of the btrfs that the open fd is in, and waits until it is
// on disk. ENOTTY: it is another filesystem.
func EndTransaction(fd int) Errno {
	const (
		startSync = 0x80089418 // BTRFS_IOC_START_SYNC of linux/btrfs.h
		waitSync  = 0x40089416 // BTRFS_IOC_WAIT_SYNC
	)
	var id uint64
	if e := ioctl(fd, startSync, unsafe.Pointer(&id)); e != 0 {
		return e
	}
	return ioctl(fd, waitSync, unsafe.Pointer(&id))
}

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
