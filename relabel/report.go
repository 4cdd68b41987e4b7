// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"sync/atomic"
	"time"
)

// Counts are of entries. Seen = Written + Right + Vanished + Skipped + Failed.
type Counts struct {
	Seen     int64 // entries met, the root included
	Written  int64 // labels written; by Verify, labels that differ
	Right    int64 // labels that were right already
	Vanished int64 // entries that were gone when their turn came
	Skipped  int64 // entries not to be labelled: exclusions, what can have no label, hard links if asked
	Failed   int64 // entries that could not be labelled or read, directories that could not be listed
}

// Report is the result of a run.
type Report struct {
	Root  string // as the caller named it
	Label string // in canonical form, as the kernel prints it
	Counts

	Trusted     bool   // nothing was walked, because what Options.Skip names has the label
	Shared      bool   // of Group.Tree: the work was another caller's too
	Complete    bool   // every entry has the label, but for those skipped; of Verify: none differs
	Interrupted string // Label, if an earlier run to it did not finish, by its seal or claim; else ""
	// Way names how entries were reached, as in "clone/setxattrat": see docs/security.md. It ends
	// with "/slow" if the program was built so that the Go scheduler is informed of each call.
	Way     string
	Notes   []string      // what was not done as asked, in sentences for people
	Elapsed time.Duration // from the call to the return
}

// Progress shows a run while it is under way. Any goroutine may ask at any time, and slows no
// worker down. The zero value is ready for use in one Options.
type Progress struct {
	state atomic.Pointer[func() State]
}

// State returns how far the run is; false before it has begun.
func (p *Progress) State() (State, bool) {
	if state := p.state.Load(); state != nil {
		return (*state)(), true
	}
	return State{}, false
}

// State has what a run has done so far: see Progress. The counts lag by up to 32 entries a worker.
// The root counts as skipped until it is written.
type State struct {
	Counts
	Found   int64 // directories met beneath the root
	Entered int64 // of these, those that a worker has begun to read

	Path string // a directory that is worked on; the tree's owner chose the names beneath the root
	Call string // the system call under way where no directory is worked on, such as syncfs

	waits string // see Work.Waits
}
