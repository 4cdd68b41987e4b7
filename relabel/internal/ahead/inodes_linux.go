// SPDX-License-Identifier: Apache-2.0

package ahead

import (
	"github.com/fastlabel/fastlabel/relabel/internal/mounts"
	"github.com/fastlabel/fastlabel/relabel/internal/sys"
	"github.com/fastlabel/fastlabel/relabel/internal/xattrio"
)

const (
	// fewest names are worth a call.
	fewest = 16
	// sparse is how many inode numbers there may be for a name: XFS reads what lies
	// between too.
	sparse = 4
)

// Inodes asks for the inodes of what the records name, in a directory of m that is fd, if
// they lie near each other. It returns when they are read.
func (a *Disk) Inodes(m *mounts.Mount, fd int, records []byte, at func(xattrio.SyscallKind)) {
	if !m.Clusters || !a.Pays() {
		return
	}
	first, last, names := ^uint64(0), uint64(0), uint64(0)
	for len(records) > 0 {
		r, length, err := sys.Parse(records)
		if err != nil {
			return
		}
		if r.Kind != sys.KindDir {
			first, last = min(first, r.Ino), max(last, r.Ino)
			names++
		}
		records = records[length:]
	}
	if names < fewest || last-first >= sparse*names {
		return
	}
	for first != 0 {
		at(xattrio.Ioctl)
		var e sys.Errno
		if first, e = sys.ReadInodes(fd, first, last); e != 0 { // as without CAP_SYS_ADMIN
			a.off.Store(true)
		}
	}
}
