// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"cmp"
	"context"
	"os"
	"time"

	"github.com/fastlabel/fastlabel/internal/mounts"
)

// Skip says for which root a tree is taken as done without a walk: a wrong label beneath is not
// found.
type Skip int

const (
	SkipNone Skip = iota // for none: every label is looked at
	SkipRoot             // for a root that has the label, which is written last
	SkipTop              // for a root that has the label, and so have its own entries
)

// HardLinks says what becomes of a file that has several names. Labelled by one of them it has the
// label by all, also by those outside the tree. docs/security.md says who can make such a name.
type HardLinks int

const (
	LinksLabel HardLinks = iota // it is labelled by whatever name it is met
	LinksSkip                   // it is skipped, unless it has the label already
	LinksError                  // it is a failure (ErrHardLinks), unless it has the label already
)

// Options of Tree, Verify, Apply and VerifyApply. The zero value, and a nil pointer to one, is the
// safe default. Calls at the same time may share one, but for its Progress.
type Options struct {
	// Workers limits the threads that work. Below 1 it is one for each processor that the process
	// may use, up to 16 while these wait for a disk and more are faster; on filesystems with a
	// server 48, up to 256 while the run is alone in the process. All runs share what
	// SetMaxWorkers allows.
	Workers int
	Skip    Skip // SkipNone at zero: the whole tree is looked at
	// OneFilesystem skips what is mounted beneath the root, and subvolumes of btrfs: what has
	// another device number, as find -xdev does. At zero that is labelled too.
	OneFilesystem bool
	// Exclude has paths of what is skipped, with all that is beneath it. One that does not exist is
	// an error, an *fs.PathError with Op "exclude" and without an errno; fs.ErrNotExist is the
	// root's. So is one that is the root, or holds it; but Apply by file contexts skips that root.
	Exclude   []string
	HardLinks HardLinks // LinksLabel at zero; the others cost three more calls for each entry
	// Throttle, if not nil, is called by each worker before its next 1 to 8 entries, with their
	// number: the WaitN of an x/time/rate.Limiter with a burst of 8 or more serves as it is. It
	// must return soon when ctx ends; an error before that ends the run, as its cause. Calls are
	// concurrent, and one that waits is not reported as hanging.
	Throttle func(ctx context.Context, entries int) error
	// Sync puts everything on disk before the root's label, and that before Tree returns. At zero
	// Tree waits for the disk only where the filesystem does not keep the order of labels. For a
	// root that is trusted by Skip nothing waits.
	Sync     bool
	Progress *Progress // if not nil, says at any time how far the run is
	Trace    *Trace    // if not nil, has callbacks for what happens: LogTo makes one that logs
	// LockTimeout is the longest wait for another relabel of the volume: after it the error is
	// ErrLocked. At zero the wait ends with the context.
	LockTimeout time.Duration
	// Exact reads every label before it writes one. At zero, a tree whose root has another
	// label is written unread once a long row of labels was wrong.
	Exact bool
	// NoSeal keeps the root's old label until the commit. An interrupted run may then look
	// done to a caller who asks for the old label, and a root that was right stays trusted
	// when something beneath it failed.
	NoSeal bool
}

// inner has the options of callers in this package.
type inner struct {
	dry   bool                            // nothing is written
	here  bool                            // the caller's goroutine may do the work: there are no callbacks
	joins bool                            // it trusts a root that a run like it, for which it waited, has labelled
	dir   *os.File                        // the root
	at    *mounts.Volume                  // the root is to be this one, or the error is flight.ErrMoved
	ended func()                          // called when nothing is open any more
	idle  func()                          // called when the run waits for the lock or, for a second, for the filesystem
	turn  func(ctx context.Context) error // waits until the run may walk
	can   *capabilities                   // for tests; nil: what probe finds
}

// orZero returns what o points to, or the defaults.
func (o *Options) orZero() Options { return *cmp.Or(o, &Options{}) }
