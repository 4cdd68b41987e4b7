// SPDX-License-Identifier: Apache-2.0

package xattrio

import (
	"syscall"

	"github.com/fastlabel/fastlabel/internal/sys"
)

// Verdict is the meaning of an errno to the walk. EINTR never comes this far.
type Verdict uint8

// The verdicts.
const (
	Failed      Verdict = iota // an error of this entry; the others go on
	Gone                       // the entry was removed during the run
	Again                      // worth another try, a bounded number of times
	Compare                    // fine if the label is right already
	Changed                    // the entry is of another kind by now
	Mounted                    // a mount is in the way
	Refused                    // no entry can be given this label: stop
	Unlabelable                // no label, for ever, if reading and writing both say so
	Sick                       // the disk: many in a row end the run
)

// Verdicts is the whole table. What it does not name has failed.
var Verdicts = [...]struct {
	Errno   sys.Errno
	Verdict Verdict
	Why     string
}{
	{syscall.ENOENT, Gone, "removed between the reading of its name and its turn"},
	{syscall.ESTALE, Again, "a network filesystem lost the handle; a second look-up finds it anew"},
	{syscall.ENOMEM, Again, "passing, as a rule"},
	{syscall.EMFILE, Again, "other workers close descriptors"},
	{syscall.ENFILE, Again, "so do other processes"},
	{syscall.EROFS, Compare, "a read-only volume that is right needs no write"},
	{syscall.EPERM, Compare, "immutable, or not ours; right is right all the same"},
	{syscall.EACCES, Compare, "what SELinux itself answers to a missing relabelfrom or relabelto"},
	{syscall.ELOOP, Changed, "a link now stands where a directory was"},
	{syscall.ENOTDIR, Changed, "something else now stands where a directory was"},
	{syscall.EXDEV, Mounted, "a mount is in the way of openat2"},
	{syscall.EINVAL, Refused, "the policy does not know the label, so it knows it nowhere"},
	{syscall.EIO, Sick, "one bad sector, or a dying disk"},
	{syscall.ENOSPC, Failed, "other entries may have room in their inodes"},
	{syscall.EDQUOT, Failed, "other entries may belong to other users"},
	{syscall.ENOKEY, Failed, "its directory is encrypted, and the name may be another by now"},
	{syscall.ENOTSUP, Unlabelable, "as the directory that a snapshot of btrfs has in place of a subvolume"},
}

// VerdictOf is the verdict on e.
func VerdictOf(e sys.Errno) Verdict {
	for i := range Verdicts {
		if Verdicts[i].Errno == e {
			return Verdicts[i].Verdict
		}
	}
	return Failed
}

// Absent is e, which was answered of a name in dir. In an encrypted directory a name that is not there
// was not removed for sure: with its key, and without, entries have other names.
func Absent(dir int, e sys.Errno) sys.Errno {
	if VerdictOf(e) == Gone {
		if st, unread := sys.Fstatx(dir); unread == 0 && st.Encrypted {
			return syscall.ENOKEY
		}
	}
	return e
}
