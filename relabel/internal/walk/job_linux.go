// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"context"

	"github.com/fastlabel/fastlabel/relabel/internal/commit"
	"github.com/fastlabel/fastlabel/relabel/internal/order"
	"github.com/fastlabel/fastlabel/relabel/internal/policy"
	"github.com/fastlabel/fastlabel/relabel/internal/sys"
)

// Job is what a walk is asked to do. It does not change while one is under way. Its
// functions are called by any worker, several at a time.
type Job struct {
	Top *Want // of what a walk begins with
	// Change says what is written where the label want is wanted and has was read, ""
	// for none: with Written the first result, with Right nothing, with Skipped nothing
	// too, but the result, if not "", is why, for who is told of changes. nil: want.
	Change    func(has, want string) (string, Outcome, error)
	Writes    Writes // ReadFirst or DryRun, where there is a Change or are Rules
	HardLinks HardLinks
	Workers   int // below 1: as many as is best
	Kernel    Kernel
	Root      *commit.Root   // asked now and then whether it is still ours; nil: nothing is committed
	Policy    *policy.Policy // asked why a label was refused; nil where SELinux is off

	// Throttle is called by a worker before it labels so many entries; an error ends the
	// run. nil: the work is not held back.
	Throttle func(ctx context.Context, entries int) error
	Events   Events
	Stop     func(why error) // ends the run

	// ByName lets labels be read by name where nothing was mounted when the mount was opened:
	// the caller makes sure that nothing was by the end. Else a name is pinned first.
	ByName bool
	// Grow makes the mount ready for several workers: a walk begins without, as long as
	// the tree may be small. nil: it is ready.
	Grow func() error
}

// Writes says how a label is written.
type Writes uint8

const (
	ReadFirst Writes = iota // where another was read
	Guess                   // unread, after a row of wrong ones
	DryRun                  // not at all
)

// HardLinks says what becomes of a file that has several names.
type HardLinks uint8

const (
	LinksLabel HardLinks = iota
	LinksSkip
	LinksError
)

// Kernel is what this kernel lets us do.
type Kernel struct {
	Way     sys.Way // the best inside a clone
	Sorting order.Sorting
}

// Events are told what happens. The worker that tells waits, and is not taken for held
// up.
type Events struct {
	Failed  func(path, op string, err error)
	Left    func(path, why string)      // alone; nil: not asked for
	Changed func(path, from, to string) // nil: not asked for
}

// Top is the directory with which a walk begins. It is open, and at its beginning.
type Top struct {
	FD        int
	Outcome   Outcome // what its own label counts as
	Rereading bool    // its entries were counted when it was read first

	// Listed is told all its records before they are labelled, if they fit into a buffer; nil: nobody is.
	Listed func(records []byte)

	Spoiled bool // after the walk: its entries could not all be read, and it counts as failed
}
