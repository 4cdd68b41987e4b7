// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"syscall"

	"github.com/fastlabel/fastlabel/relabel/internal/sys"
)

// verdict is what an errno means to the walk. EINTR never comes this far.
type verdict uint8

const (
	failed  verdict = iota // an error of this entry; the others go on
	gone                   // the entry was removed meanwhile
	again                  // worth another try, a bounded number of times
	compare                // fine if the label is right already
	changed                // the entry is of another kind by now
	foreign                // a mount is in the way
	refused                // no entry can be given this label: stop
	sick                   // the disk: many in a row end the run
)

// verdicts is the whole table. What it does not name has failed.
var verdicts = [...]struct {
	errno sys.Errno
	means verdict
	why   string
}{
	{syscall.ENOENT, gone, "removed between the reading of its name and its turn"},
	{syscall.ESTALE, again, "a network filesystem lost the handle; a second look-up finds it anew"},
	{syscall.ENOMEM, again, "passing, as a rule"},
	{syscall.EMFILE, again, "other workers give descriptors back"},
	{syscall.ENFILE, again, "so do other processes"},
	{syscall.EROFS, compare, "a read-only volume that is right needs no write"},
	{syscall.EPERM, compare, "immutable, or not ours; right is right all the same"},
	{syscall.EACCES, compare, "what SELinux itself answers to a missing relabelfrom or relabelto"},
	{syscall.ELOOP, changed, "a link now stands where a directory was"},
	{syscall.ENOTDIR, changed, "something else now stands where a directory was"},
	{syscall.EXDEV, foreign, "openat2 met a mount"},
	{syscall.EINVAL, refused, "the policy does not know the label, so it knows it nowhere"},
	{syscall.EIO, sick, "one bad sector, or a dying disk"},
	{syscall.ENOSPC, failed, "other entries may have room in their inodes"},
	{syscall.EDQUOT, failed, "other entries may belong to other users"},
	{syscall.ENOKEY, failed, "its directory is encrypted, and the name may be another by now"},
	{syscall.ENOTSUP, failed, "beneath a root that bears labels this entry does not"},
}

func judge(e sys.Errno) verdict {
	for i := range verdicts {
		if verdicts[i].errno == e {
			return verdicts[i].means
		}
	}
	return failed
}

// absent is e, which was answered of a name in dir. In an encrypted directory a name
// that is not there was not removed for sure: with its key, and without, entries have
// other names.
func absent(dir int, e sys.Errno) sys.Errno {
	if e != 0 && judge(e) == gone {
		if st, unread := sys.Fstatx(dir); unread == 0 && st.Encrypted {
			return syscall.ENOKEY
		}
	}
	return e
}

const (
	errWouldBlock = syscall.EWOULDBLOCK
	errNotDir     = syscall.ENOTDIR
	errLoop       = syscall.ELOOP
	errNotOwner   = syscall.EPERM // openat with O_NOATIME
	errNoLabel    = syscall.ENODATA
	errLongLabel  = syscall.ERANGE
	errNoRoom     = syscall.EINVAL // getdents64: the buffer is too small for the next record
)
