// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"context"

	"github.com/fastlabel/fastlabel/relabel/undo"
)

// Skip tells what lets Tree leave a volume alone without walking it.
type Skip int

const (
	// SkipNone never skips: every label is read, and strays are healed.
	SkipNone Skip = iota
	// SkipRoot trusts the root: a root that bears the label is a commit
	// record (contract point 1), and nothing else is looked at.
	SkipRoot
	// SkipTop trusts the root and its own entries, if all bear the label.
	SkipTop
	// SkipUnchanged walks, but looks at nothing that cannot have changed: in a
	// directory to which nothing was added since the run began that last
	// committed this label, only the directories are looked at. Entries created
	// or renamed since are found, wherever they are; labels that were changed in
	// place are not, nor is what was done while the clock was set back. A run
	// that wrote the label of a directory has changed it, so that the next one
	// looks at it again. The root's own entries are always looked at.
	//
	// It needs ext4, XFS, btrfs or tmpfs, a root that bears the label, and the
	// mark that a commit leaves on it (trusted.fastlabel, CAP_SYS_ADMIN).
	// Without, everything is looked at, and OnNote told. A commit leaves no mark
	// where something was left alone: exclusions, mounts, failures; nor with
	// NoSync.
	SkipUnchanged
)

// HardLinks tells what becomes of a file that has several names. Labelled by
// one of them it bears the label by all, also by those outside the tree. Who
// is confined to a volume, as a container is, cannot make a name in it for a
// file outside (link(2) answers EXDEV across mounts, the same filesystem's
// too); who can write both the volume and a directory beside it on the same
// filesystem can, within the limits of fs.protected_hardlinks (proc(5)).
type HardLinks int

const (
	// LinksLabel labels such a file by whatever name it is met.
	LinksLabel HardLinks = iota
	// LinksSkip leaves it alone: it is counted in Report.Skipped and told to
	// OnSkip, unless it bears the label already.
	LinksSkip
	// LinksError makes it a failure (ErrHardLinks), unless it bears the label
	// already.
	LinksError
)

// Options tune Tree. The zero value is the safe default.
type Options struct {
	// Threads is the number of workers. At 0 the engine begins with one for
	// each processor that the process may use by its affinity and, as Go's
	// runtime reads it, by its cgroup's CPU limit; it has up to 16 while the
	// processors wait for a disk and more workers get on faster; on a
	// filesystem with a server, as FUSE and NFS are, it has 48. All runs of a
	// process share what SetMaxWorkers allows: one may have fewer than it asks for.
	Threads int
	// Skip is SkipNone at zero: the whole tree is looked at.
	Skip Skip
	// Exact reads every label before it writes one. At zero, a tree whose
	// root bears another label is written unread once a long row of labels
	// was wrong (contract point 4).
	Exact bool
	// DryRun reads every label and writes none. Report.Written then counts
	// the entries that bear another label, and nothing is locked or sealed.
	DryRun bool
	// OneFilesystem leaves alone what is mounted beneath the root. At zero
	// each mount is walked as a root of its own.
	OneFilesystem bool
	// Exclude names directories or files (paths as the caller would open
	// them) that are left alone with all that is beneath them. They are
	// resolved once, to device and inode. One that does not exist is an error, and
	// so is one that is the root, or holds it.
	Exclude []string
	// HardLinks is LinksLabel at zero. The other two pin each entry that is
	// no directory and ask for its link count before it is written: three
	// more calls for each.
	HardLinks HardLinks
	// NoSeal leaves the root's old label in place until the commit. An
	// interrupted run may then look done to whoever asks for the old label,
	// and a root that was right goes on vouching when something beneath it
	// failed.
	NoSeal bool
	// NoSync commits without waiting for the disk. After a power failure the
	// root may then bear the label while entries beneath it do not.
	NoSync bool

	// Recorder, if not nil, keeps the label of each entry before it is
	// overwritten; Restore puts it back. Every label is then read first, as with
	// Exact, but some thousand entries before they are written: what somebody
	// else gave one of them in between is overwritten, and not recorded. Nothing
	// may be mounted beneath the root, unless OneFilesystem leaves it alone
	// (errors.ErrUnsupported). One worker more than Threads is at work, for one
	// waits for the record's disk. A dry run records nothing.
	Recorder undo.Recorder

	// Throttle, if not nil, lets the caller hold the work back: each worker
	// calls it before its next few entries, with their number, which is 1 to 8,
	// and goes on when it returns. Each entry beneath the root is asked for
	// once, and those of the root again when they are read a second time. It
	// must return soon when ctx ends. Calls are concurrent, and nobody who
	// waits here is taken for held up. Left to the engine, the number of
	// workers is then not raised while it runs.
	Throttle func(ctx context.Context, entries int)

	// OnBegin, if not nil, is told once, before anything is done, whom to ask
	// how far the run is: see State. Any goroutine may ask at any time, also
	// when Tree has returned. Workers wait for nobody who asks, but for what it
	// takes to copy their counts.
	OnBegin func(state func() State)

	// The callbacks hold up the worker that calls them. Each is called in a
	// goroutine of its own. One that does not return keeps a run from going on,
	// not from ending: when ctx has ended it is named in a *Hung, and may still
	// be under way; none begins. If one panics or calls runtime.Goexit, the run
	// ends, its root vouches for nothing, and the same happens to the caller of
	// Tree: see Panic. That holds for Recorder and Throttle too.

	// OnFailure, if not nil, is told each failure as it happens. The error
	// is an *fs.PathError with the full path, the system call as Op, and the
	// errno. Calls are serial, from the engine's goroutines.
	OnFailure func(error)
	// OnChange, if not nil, is told each entry that was written (in a dry
	// run: would be), with the label it bore; "" if it bore none or was not
	// read. It costs a path for each such entry. Calls are serial.
	OnChange func(path, from string)
	// OnSkip, if not nil, is told each mount, exclusion or refused directory
	// that was left alone, and why. Calls are serial.
	OnSkip func(path, reason string)
	// OnStall, if not nil, is told when nothing has moved for a second: what
	// is left of the work waits for these calls. It is told again after each
	// time that something moved. Calls are serial.
	OnStall func(calls []HungCall)
	// OnNote, if not nil, is told each of Report.Notes when it is made: what
	// a caller should know before the work is done is told before. Calls are
	// serial.
	OnNote func(text string)
	// OnWait, if not nil, is told once who holds the volume's lock when Tree
	// has to wait for another relabel of the same volume.
	OnWait func(holder string)

	inner inner
}

// inner is what callers in this package ask for.
type inner struct {
	share *share    // of a run that this one is part of
	at    *volumeID // the root is to be this one, or the error is errMoved
	ended func()    // told when nothing is open any more
}
