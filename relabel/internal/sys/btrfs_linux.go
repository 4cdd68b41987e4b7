// SPDX-License-Identifier: Apache-2.0

package sys

import (
	"encoding/binary"
	"math"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Numbers of linux/btrfs.h and linux/btrfs_tree.h.
const (
	BtrfsMagic = unix.BTRFS_SUPER_MAGIC

	// BtrfsRoot is the inode number of a subvolume's top directory, and
	// BtrfsLast the highest that an entry may have.
	BtrfsRoot = 256
	BtrfsLast = math.MaxUint64 - 255

	BtrfsInodeItem   = 1
	BtrfsInodeRef    = 12
	BtrfsInodeExtref = 13
	BtrfsXattrItem   = 24
	BtrfsDirItem     = 84

	btrfsRootItem = 132

	ioctlTreeSearchV2 = 0xc0709411
	ioctlInoLookup    = 0xd0009412
	ioctlFSInfo       = 0x8400941f
	infoGeneration    = 1 << 1
)

// BtrfsKey is where an item stands in a subvolume's tree: they are in the order
// of its fields.
type BtrfsKey struct {
	Object uint64 // an inode number
	Type   uint8
	Offset uint64
}

// Next is the first key behind k, and no if there is none.
func (k BtrfsKey) Next() (BtrfsKey, bool) {
	if k.Offset++; k.Offset != 0 {
		return k, true
	}
	if k.Type++; k.Type != 0 {
		return k, true
	}
	k.Object++
	return k, k.Object != 0
}

// BtrfsItem is one item of a tree. Data lies in the buffer of the search.
type BtrfsItem struct {
	BtrfsKey
	Data []byte
}

type btrfsSearch struct {
	tree                     uint64 // 0: the one that the descriptor stands in
	minObject, maxObject     uint64
	minOffset, maxOffset     uint64
	minTransid, maxTransid   uint64
	minType, maxType, number uint32
	_                        uint32
	_                        [4]uint64
	size                     uint64
}

// BtrfsSearch reads items of the subvolume that fd stands in, from the key on, to
// the end of object last, as many as there is room for after a header in buf,
// which must hold 64 KiB at least. Leaves that are unchanged since transaction
// since are passed over. It answers how many items there are in buf, and EPERM
// without CAP_SYS_ADMIN.
func BtrfsSearch(fd int, from BtrfsKey, last, since uint64, buf []byte) (int, Errno) {
	const head = int(unsafe.Sizeof(btrfsSearch{}))
	s := (*btrfsSearch)(unsafe.Pointer(unsafe.SliceData(buf)))
	for {
		*s = btrfsSearch{
			minObject: from.Object, minType: uint32(from.Type), minOffset: from.Offset,
			maxObject: last, maxType: math.MaxUint8, maxOffset: math.MaxUint64,
			minTransid: since, maxTransid: math.MaxUint64,
			number: math.MaxUint32, size: uint64(len(buf) - head),
		}
		_, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), ioctlTreeSearchV2, uintptr(unsafe.Pointer(s)))
		if e != unix.EINTR {
			return int(s.number), e
		}
	}
}

// BtrfsItems calls each with the n items that BtrfsSearch has read into buf, until
// one says no, and returns the key of the last.
func BtrfsItems(buf []byte, n int, each func(BtrfsItem) bool) BtrfsKey {
	at := int(unsafe.Sizeof(btrfsSearch{}))
	var key BtrfsKey
	for range n {
		h := buf[at : at+32]
		key = BtrfsKey{Object: binary.NativeEndian.Uint64(h[8:]), Type: uint8(binary.NativeEndian.Uint32(h[24:])), Offset: binary.NativeEndian.Uint64(h[16:])}
		end := at + 32 + int(binary.NativeEndian.Uint32(h[28:]))
		if !each(BtrfsItem{key, buf[at+32 : end]}) {
			break
		}
		at = end
	}
	return key
}

// BtrfsInode reads an inode item: mode and number of names.
func BtrfsInode(item []byte) (mode, links uint32) {
	if len(item) < 160 {
		return 0, 0
	}
	return binary.LittleEndian.Uint32(item[52:]), binary.LittleEndian.Uint32(item[40:])
}

// BtrfsDirEntry takes the first entry off a directory or attribute item, which may
// hold several. Subvolume says that the entry is one.
func BtrfsDirEntry(item []byte) (name, value []byte, subvolume bool, rest []byte) {
	const head = 30
	if len(item) < head {
		return nil, nil, false, nil
	}
	values, names := int(binary.LittleEndian.Uint16(item[25:])), int(binary.LittleEndian.Uint16(item[27:]))
	if len(item) < head+names+values {
		return nil, nil, false, nil
	}
	name, value = item[head:head+names], item[head+names:head+names+values]
	return name, value, item[8] == btrfsRootItem, item[head+names+values:]
}

// BtrfsName takes the first name of an inode off a reference item; an extended one
// holds the directory it is in, others have it as the key's offset.
func BtrfsName(it BtrfsItem) (parent uint64, name, rest []byte) {
	head, lengthAt := 10, 8
	parent = it.Offset
	if it.Type == BtrfsInodeExtref {
		head, lengthAt = 18, 16
	}
	if len(it.Data) < head {
		return 0, nil, nil
	}
	if it.Type == BtrfsInodeExtref {
		parent = binary.LittleEndian.Uint64(it.Data)
	}
	n := int(binary.LittleEndian.Uint16(it.Data[lengthAt:]))
	if len(it.Data) < head+n {
		return 0, nil, nil
	}
	return parent, it.Data[head : head+n], it.Data[head+n:]
}

// BtrfsPath is where the directory with that inode number is, below the top of the
// subvolume that fd stands in: each name with a slash behind it.
func BtrfsPath(fd int, object uint64) (string, Errno) {
	args := make([]byte, 4096)
	binary.NativeEndian.PutUint64(args[8:], object)
	for {
		_, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), ioctlInoLookup, uintptr(unsafe.Pointer(unsafe.SliceData(args))))
		if e != unix.EINTR {
			return unix.ByteSliceToString(args[16:]), e
		}
	}
}

// BtrfsState is a filesystem's identity and the number of the transaction in which
// it is: whatever changes from now on bears that number, or a higher one (Linux
// 5.10). Before that, it is 0.
func BtrfsState(fd int) (fsid [16]byte, transid uint64, e Errno) {
	args := make([]byte, 1024)
	binary.NativeEndian.PutUint64(args[48:], infoGeneration)
	_, _, e = unix.Syscall(unix.SYS_IOCTL, uintptr(fd), ioctlFSInfo, uintptr(unsafe.Pointer(unsafe.SliceData(args))))
	if e == 0 && binary.NativeEndian.Uint64(args[48:])&infoGeneration != 0 {
		transid = binary.NativeEndian.Uint64(args[56:])
	}
	return [16]byte(args[16:32]), transid, e
}
