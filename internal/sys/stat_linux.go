// SPDX-License-Identifier: Apache-2.0

package sys

import (
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The kinds that the walk distinguishes.
const (
	KindUnknown Kind = unix.DT_UNKNOWN
	KindDir     Kind = unix.DT_DIR
	KindLink    Kind = unix.DT_LNK
	KindFile    Kind = unix.DT_REG
	KindChar    Kind = unix.DT_CHR
	KindBlock   Kind = unix.DT_BLK
)

// Stat describes an entry, as far as the walk needs it.
type Stat struct {
	Dev   uint64 // major << 32 | minor
	Ino   uint64
	Mount uint64 // the mount's id; 0 where the kernel does not report it (before Linux 5.8)
	Kind  Kind
	Links uint32
	Size  int64 // bytes
	Mtime time.Time
	Ctime time.Time
	// Immutable and Append are what chattr(1) sets with +i and +a, where the
	// filesystem reports them (statx(2)). Attributes of such a file cannot be written.
	Immutable, Append bool
	// Encrypted is a directory whose names depend on a key being there (fscrypt).
	Encrypted bool
}

// Statx asks about name in dir or, without a name, about dir itself. Links are not followed and
// automounts not triggered.
func Statx(dir int, name *byte) (Stat, Errno) { return statx(dir, name, 0) }

// Fstatx is Statx of fd itself.
func Fstatx(fd int) (Stat, Errno) { return statx(fd, nil, 0) }

// Refresh is Statx of what the server of a network filesystem says now. With that comes the label.
func Refresh(dir int, name *byte) (Stat, Errno) {
	return statx(dir, name, unix.AT_STATX_FORCE_SYNC)
}

// Clock is the time that a local filesystem stamps a change with, but for the filesystem's
// own precision: since Linux 6.13 the time of a later stamp is no earlier than this, and
// before it was this. It moves with the kernel's tick, every 1 to 10 ms.
func Clock() (time.Time, Errno) {
	var now unix.Timespec
	e := bare(unix.ClockGettime(unix.CLOCK_REALTIME_COARSE, &now))
	return time.Unix(now.Unix()), e
}

// empty is the name by which the *at calls mean the descriptor itself.
var empty byte

func statx(dir int, name *byte, sync uintptr) (Stat, Errno) {
	const ask = unix.STATX_TYPE | unix.STATX_INO | unix.STATX_NLINK | unix.STATX_SIZE | unix.STATX_MTIME | unix.STATX_CTIME | unix.STATX_MNT_ID
	var st unix.Statx_t
	flags := uintptr(unix.AT_SYMLINK_NOFOLLOW | unix.AT_NO_AUTOMOUNT)
	if name == nil {
		name, flags = &empty, flags|unix.AT_EMPTY_PATH
	}
	e := fill(&st, dir, name, flags|sync, ask)
	if e == unix.EPERM || e == unix.ENOSYS { // a seccomp profile that does not know statx
		e = fillOld(&st, dir, name, int(flags))
	}
	if e != 0 {
		return Stat{}, e
	}
	return Stat{
		Dev:   device(&st),
		Ino:   st.Ino,
		Mount: st.Mnt_id,
		Kind:  Kind(st.Mode & unix.S_IFMT >> 12), // as IFTODT does
		Links: st.Nlink,
		Size:  int64(st.Size),
		Mtime: time.Unix(st.Mtime.Sec, int64(st.Mtime.Nsec)),
		Ctime: time.Unix(st.Ctime.Sec, int64(st.Ctime.Nsec)),

		Immutable: st.Attributes&unix.STATX_ATTR_IMMUTABLE != 0,
		Append:    st.Attributes&unix.STATX_ATTR_APPEND != 0,
		Encrypted: st.Attributes&unix.STATX_ATTR_ENCRYPTED != 0,
	}, 0
}

// fill asks statx(2) about name in dir. What the kernel does not report is 0 (cp_statx of
// fs/stat.c).
func fill(st *unix.Statx_t, dir int, name *byte, flags, mask uintptr) Errno {
	_, e := retry(func() (uintptr, uintptr, Errno) {
		return unix.Syscall6(unix.SYS_STATX, uintptr(dir), uintptr(unsafe.Pointer(name)), flags, mask, uintptr(unsafe.Pointer(st)), 0)
	})
	return e
}

// fillOld is fill by fstatat, which reports neither the mount nor the attributes.
func fillOld(st *unix.Statx_t, dir int, name *byte, flags int) Errno {
	var old unix.Stat_t
	e := bare(unix.Fstatat(dir, Text(name), &old, flags))
	dev := uint64(old.Dev) //nolint:unconvert // 32 bits on some architectures
	st.Dev_major, st.Dev_minor, st.Ino = unix.Major(dev), unix.Minor(dev), old.Ino
	st.Mode, st.Nlink, st.Size = uint16(old.Mode), uint32(old.Nlink), uint64(old.Size)
	st.Mtime.Sec, st.Ctime.Sec = int64(old.Mtim.Sec), int64(old.Ctim.Sec) //nolint:unconvert // as above
	st.Mtime.Nsec, st.Ctime.Nsec = uint32(old.Mtim.Nsec), uint32(old.Ctim.Nsec)
	return e
}

func device(st *unix.Statx_t) uint64 { return uint64(st.Dev_major)<<32 | uint64(st.Dev_minor) }

// MountID asks for the id of the mount that fd stands in, and no server for
// anything. ENOSYS: the kernel does not report it (before Linux 5.8).
func MountID(fd int) (uint64, Errno) { return mountOf(fd, unix.STATX_MNT_ID) }

// UniqueMountID is MountID of the id that no other mount gets (Linux 6.8).
func UniqueMountID(fd int) (uint64, Errno) { return mountOf(fd, unix.STATX_MNT_ID_UNIQUE) }

func mountOf(fd int, id uint32) (uint64, Errno) {
	var st unix.Statx_t
	e := fill(&st, fd, &empty, unix.AT_EMPTY_PATH|unix.AT_STATX_DONT_SYNC, uintptr(id))
	if e == 0 && st.Mask&id == 0 {
		e = unix.ENOSYS
	}
	return st.Mnt_id, e
}

// MountIDByHandle is MountID by name_to_handle_at, which kernels before 5.8 have too.
func MountIDByHandle(fd int) (uint64, Errno) {
	var id int32
	_, e := retry(func() (uintptr, uintptr, Errno) {
		var handle [8]byte // of size 0: the kernel answers EOVERFLOW, and the mount id
		return unix.Syscall6(unix.SYS_NAME_TO_HANDLE_AT, uintptr(fd), uintptr(unsafe.Pointer(&empty)), uintptr(unsafe.Pointer(&handle)), uintptr(unsafe.Pointer(&id)), unix.AT_EMPTY_PATH, 0)
	})
	if e != 0 && e != unix.EOVERFLOW {
		return 0, e
	}
	return uint64(id), 0
}

// Place asks what identifies fd among all files, also later ones: where it lies, and when it was born,
// in nanoseconds, 0 where the filesystem does not report it. No mount gets that id again since Linux 6.8.
func Place(fd int) (at Stat, born int64, e Errno) {
	const ask = unix.STATX_INO | unix.STATX_BTIME | unix.STATX_MNT_ID | unix.STATX_MNT_ID_UNIQUE
	var st unix.Statx_t
	e = fill(&st, fd, &empty, unix.AT_EMPTY_PATH|unix.AT_SYMLINK_NOFOLLOW|unix.AT_NO_AUTOMOUNT, ask)
	return Stat{Dev: device(&st), Ino: st.Ino, Mount: st.Mnt_id}, st.Btime.Sec*1e9 + int64(st.Btime.Nsec), e
}

// Text is the name at p without its NUL; "" for nil.
func Text(p *byte) string { return unix.BytePtrToString(p) }

// Cname is name with the NUL that the kernel wants, which name may have already.
func Cname(name string) *byte {
	if end := len(name) - 1; strings.IndexByte(name, 0) == end && end > 0 {
		return unsafe.StringData(name)
	}
	p, err := syscall.BytePtrFromString(name)
	if err != nil { // with the empty name each call fails, with ENOENT
		return &empty
	}
	return p
}
