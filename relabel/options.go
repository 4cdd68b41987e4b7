// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"context"
	"os"
	"time"

	"github.com/fastlabel/fastlabel/relabel/internal/mounts"
)

// Skip says for which root a tree is taken as done without a walk. A wrong label beneath it
// is not found.
type Skip int

const (
	// SkipNone looks at every label: strays are healed.
	SkipNone Skip = iota
	// SkipRoot takes a root that has the label: it is a commit record.
	SkipRoot
	// SkipTop takes a root that has the label, and so have its own entries.
	SkipTop
)

// HardLinks says what becomes of a file that has several names. Labelled by one of them it
// has the label by all, also by those outside the tree. docs/security.md says who can make such
// a name.
type HardLinks int

const (
	// LinksLabel labels such a file by whatever name it is met.
	LinksLabel HardLinks = iota
	// LinksSkip skips it, unless it has the label already.
	LinksSkip
	// LinksError makes it a failure (ErrHardLinks), unless it has the label already.
	LinksError
)

// Options are how Tree and Check work. The zero value, and a nil pointer to one,
// is the safe default.
type Options struct {
	// Workers is how many threads work at most. At 0 it is one for each processor that the
	// process may use by its affinity and, as Go's runtime reads it, by its cgroup's CPU
	// limit; up to 16 while the processors wait for a disk and more are faster; on FUSE,
	// NFS and other filesystems with a server 48, and up to 256 while the run is alone in
	// the process and more are faster. All runs of a process share what SetMaxWorkers
	// allows, so one may have fewer.
	Workers int
	// Skip is SkipNone at zero: the whole tree is looked at.
	Skip Skip
	// OneFilesystem skips what is mounted beneath the root, and subvolumes of btrfs: what has
	// another device number, as find -xdev does. At zero that is labelled too.
	OneFilesystem bool
	// Exclude names directories or files, by paths as the caller would open them, that are
	// skipped with all that is beneath them. Each is looked up once, to device and inode. One
	// that does not exist is an error (not fs.ErrNotExist, which is of the root), and so is
	// one that is the root, or holds it; but Apply by file contexts skips that root.
	Exclude []string
	// HardLinks is LinksLabel at zero. The other two cost three more calls for each entry
	// that is no directory.
	HardLinks HardLinks
	// Throttle, if not nil, lets the caller slow the run down: each worker calls it before
	// its next few entries, with their number, which is 1 to 8. Each entry beneath the root
	// is asked for once, and those of the root again when they are read a second time. It
	// must return soon when ctx ends; an error before that ends the run, as its cause. So the
	// WaitN of a golang.org/x/time/rate.Limiter with a burst of 8 or more serves as it is.
	// Calls are concurrent, and one that waits is not reported as hanging. At Workers 0 the
	// number of workers is then not raised.
	Throttle func(ctx context.Context, entries int) error
	// Sync puts everything on disk before the root's label, and that before Tree returns. At
	// zero Tree waits for the disk only where the filesystem does not keep labels in the order
	// in which they were written. For a root that is trusted by Skip nothing waits.
	Sync bool
	// Progress, if not nil, says at any time how far the run is. It is of one run.
	Progress *Progress
	// Trace, if not nil, has callbacks for what happens: see LogTo for one that logs.
	Trace *Trace
	// LockTimeout is the longest wait for another relabel of the volume; then the error is
	// ErrLocked. At zero the wait ends with the context.
	LockTimeout time.Duration

	// The rest takes time, or guarantees away; few need it.

	// Exact reads every label before it writes one. At zero, a tree whose root has another
	// label is written unread once a long row of labels was wrong.
	Exact bool
	// NoSeal keeps the root's old label until the commit. An interrupted run may then look
	// done to a caller who asks for the old label, and a root that was right stays trusted
	// when something beneath it failed.
	NoSeal bool
}

// inner is what callers in this package ask for.
type inner struct {
	dry   bool           // nothing is written
	here  bool           // nothing of the caller's is called: he may do the work himself
	joins bool           // it trusts a root that a run like it, for which it waited, has labelled
	dir   *os.File       // the root
	at    *mounts.Volume // the root is to be this one, or the error is flight.ErrMoved
	ended func()         // called when nothing is open any more
	can   *capabilities  // for tests; nil: what probe finds
}

// orZero returns what o points to, or the defaults.
func (o *Options) orZero() Options {
	if o == nil {
		return Options{}
	}
	return *o
}
