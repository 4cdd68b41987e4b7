// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"context"
	"time"

	"github.com/fastlabel/fastlabel/relabel/internal/mounts"
)

// Trust tells what of a volume is believed without a walk. Whatever is believed
// is not looked at, and a wrong label there is not found.
type Trust int

const (
	// TrustNothing looks at every label: strays are healed.
	TrustNothing Trust = iota
	// TrustRoot believes a root that has the label, which is a commit record
	// (contract point 1).
	TrustRoot
	// TrustTop believes the root and its own entries, if all have the label.
	TrustTop
)

// HardLinks tells what becomes of a file that has several names. Labelled by
// one of them it has the label by all, also by those outside the tree. Who
// is confined to a volume, as a container is, cannot make a name in it for a
// file outside (link(2) answers EXDEV across mounts, the same filesystem's
// too); who can write both the volume and a directory beside it on the same
// filesystem can, within the limits of fs.protected_hardlinks (proc(5)).
type HardLinks int

const (
	// LinksLabel labels such a file by whatever name it is met.
	LinksLabel HardLinks = iota
	// LinksSkip leaves it alone: it is counted in Report.Skipped and told to
	// Trace.Skip, unless it has the label already.
	LinksSkip
	// LinksError makes it a failure (ErrHardLinks), unless it has the label
	// already.
	LinksError
)

// Options are how Tree and Check work. The zero value, and a nil pointer to one,
// is the safe default.
type Options struct {
	// Workers is how many threads are at work, all but the first once there is work
	// for them. At 0 the engine has one for each processor that the process may use
	// by its affinity and, as Go's runtime reads it, by its cgroup's CPU limit; it
	// has up to 16 while the processors wait for a disk and more workers get on
	// faster; on a filesystem with a server, as FUSE and NFS are, it has 48, and up to
	// 256 while the run is alone in the process and more workers get on faster. All
	// runs of a process share what SetMaxWorkers allows: one may have fewer than it
	// asks for, and leaves a fifth to others of what the engine tries.
	Workers int
	// Trust is TrustNothing at zero: the whole tree is looked at.
	Trust Trust
	// OneFilesystem leaves alone what is mounted beneath the root. At zero
	// each mount is walked as a root of its own.
	OneFilesystem bool
	// Exclude names directories or files (paths as the caller would open
	// them) that are left alone with all that is beneath them. They are
	// resolved once, to device and inode. One that does not exist is an error (not
	// fs.ErrNotExist, which says that the root does not), and so is one that is the
	// root, or holds it; but to Apply by file contexts that root is skipped.
	Exclude []string
	// HardLinks is LinksLabel at zero. The other two pin each entry that is
	// no directory and ask for its link count before it is written: three
	// more calls for each.
	HardLinks HardLinks
	// Throttle, if not nil, lets the caller hold the work back: each worker
	// calls it before its next few entries, with their number, which is 1 to 8,
	// and goes on when it returns. Each entry beneath the root is asked for
	// once, and those of the root again when they are read a second time. It
	// must return soon when ctx ends; an error before that ends the run, with it
	// as the cause. So the WaitN of a golang.org/x/time/rate.Limiter with a burst
	// of 8 or more serves as it is. Calls are concurrent, and a worker that waits here
	// is not taken for held up. Left to the engine, the number of workers is then not
	// raised while it runs.
	Throttle func(ctx context.Context, entries int) error
	// Sync puts everything on disk before the root's label, and that before Tree returns. At
	// zero Tree waits for the disk only where the filesystem does not keep labels in the order
	// in which they were written (contract point 1). A root that Trust takes for done is
	// not waited for.
	Sync bool
	// Progress, if not nil, says at any time how far the run is. It is of one run.
	Progress *Progress
	// Trace, if not nil, is told what happens: see LogTo for one that logs.
	Trace *Trace
	// Advanced are options that few need; some take guarantees away.
	Advanced Advanced

	inner inner
}

// Advanced are options that few need. The zero value is the safe default.
type Advanced struct {
	// Exact reads every label before it writes one. At zero, a tree whose
	// root has another label is written unread once a long row of labels
	// was wrong (contract point 4).
	Exact bool
	// NoSeal leaves the root's old label in place until the commit. An
	// interrupted run may then look done to a caller who asks for the old label,
	// and a root that was right goes on vouching when something beneath it
	// failed.
	NoSeal bool
}

// inner is what callers in this package ask for.
type inner struct {
	check    bool           // nothing is written
	patience time.Duration  // with which another relabel's lock is waited for; 0: as long as ctx lets it
	at       *mounts.Volume // the root is to be this one, or the error is flight.ErrMoved
	ended    func()         // told when nothing is open any more
}

// orZero is what o points to, or the defaults.
func (o *Options) orZero() Options {
	if o == nil {
		return Options{}
	}
	return *o
}
