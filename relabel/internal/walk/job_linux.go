// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"context"
	"time"

	"github.com/fastlabel/fastlabel/relabel/internal/commit"
	"github.com/fastlabel/fastlabel/relabel/internal/policy"
	"github.com/fastlabel/fastlabel/relabel/internal/xattrio"
	"github.com/fastlabel/fastlabel/relabel/undo"
)

// Job is what a walk is asked to do. It does not change while one is under way. Its
// functions are called by any worker, several at a time.
type Job struct {
	// Label says what is wanted of the directory name in parent. It is asked once, by
	// the worker that enters the directory; parent is nil for what a walk begins with.
	// The name ends with a NUL.
	Label     func(parent *Dir, name string) *Want
	Writes    Writes
	HardLinks HardLinks
	Workers   int // below 1: as many as is best
	Kernel    Kernel
	Root      *commit.Root   // asked now and then whether it is still ours; nil: nothing is committed
	Policy    *policy.Policy // asked why a label was refused; nil where SELinux is off

	// Keep has what entries had put on record; what waits for that is not written
	// after an error. nil: nothing is recorded.
	Keep func([]undo.Page) error
	// Throttle lets one worker ask for leave to label so many entries more, until it
	// ends that. nil: the work is not held back.
	Throttle func(context.Context) (ask func(entries int), end func())
	Events   Events
	Stop     func(why error) // ends the run
}

// Want is what a directory is to have, and all that is in it and no directory: one
// label.
type Want struct{ Label string }

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
	Way     xattrio.Way // the best inside a clone
	Sorting Sorting

	Restless time.Duration // for tests: the tuner looks so often, and finds the processors idle
}

// Events are told what happens. The worker that tells waits, and is not taken for held
// up.
type Events struct {
	Failed  func(path, op string, err error)
	Left    func(path, why string)  // alone; nil: not asked for
	Changed func(path, from string) // nil: not asked for
}

// Top is the directory with which a walk begins. It is open, and at its beginning.
type Top struct {
	FD        int
	Outcome   Outcome   // what its own label counts as
	Since     time.Time // only what has changed since then is looked at; zero: everything
	Rereading bool      // its entries were counted when it was read first

	Spoiled bool // after the walk: its entries could not all be read, and it counts as failed
}
