// SPDX-License-Identifier: Apache-2.0

package sys

import "golang.org/x/sys/unix"

// Placed is what tells a file from all others, also later.
type Placed struct {
	Dev, Ino uint64
	Mount    uint64 // never used again since Linux 6.8; 0 before 5.8
	Born     int64  // nanoseconds; 0 where the filesystem does not tell
}

// Place asks where fd lies.
func Place(fd int) (Placed, Errno) {
	const ask = unix.STATX_INO | unix.STATX_BTIME | unix.STATX_MNT_ID | unix.STATX_MNT_ID_UNIQUE
	var st unix.Statx_t
	if e := fill(&st, fd, &empty, unix.AT_EMPTY_PATH|unix.AT_SYMLINK_NOFOLLOW|unix.AT_NO_AUTOMOUNT, ask); e != 0 {
		return Placed{}, e
	}
	p := Placed{Dev: uint64(st.Dev_major)<<32 | uint64(st.Dev_minor), Ino: st.Ino}
	if st.Mask&(unix.STATX_MNT_ID|unix.STATX_MNT_ID_UNIQUE) != 0 {
		p.Mount = st.Mnt_id
	}
	if st.Mask&unix.STATX_BTIME != 0 {
		p.Born = st.Btime.Sec*1e9 + int64(st.Btime.Nsec)
	}
	return p, 0
}

// FSID is the filesystem's own number, as it tells it to statfs.
func FSID(fd int) (uint64, Errno) {
	st, e := statfs(fd)
	return uint64(uint32(st.Fsid.Val[0]))<<32 | uint64(uint32(st.Fsid.Val[1])), e
}
