// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"sync/atomic"
	"time"
)

// Report says what Tree did. The counts add up:
// Seen = Written + Right + Vanished + Skipped + Failed.
type Report struct {
	Root  string // the root as the caller named it
	Label string // the label in canonical form, as the kernel prints it

	Seen     int64 // entries met, the root included
	Written  int64 // labels written; by Verify, labels that differ
	Right    int64 // labels that were right already
	Vanished int64 // entries that were gone when their turn came
	Skipped  int64 // entries not to be labelled: exclusions, what can have no label, hard links if asked
	Failed   int64 // entries whose label, or whose entries, could not be set or read

	// Trusted says that nothing was walked, because what Options.Skip names has the label.
	Trusted bool
	// Shared says, of Group.Tree, that the work was another caller's too.
	Shared bool
	// Complete says that every entry has the label, but for those skipped, and that the
	// root was trusted or committed. Of Verify it says that no entry differs.
	Complete bool
	// Interrupted is the label of a relabel that an earlier run began and did not finish, by
	// its seal on the root; "" if there is none.
	Interrupted string
	// Way names how entries were reached, as in "clone/setxattrat": see docs/security.md. It ends
	// with "/slow" if the program was built so that the Go scheduler is informed of each call.
	Way string
	// Notes are sentences for people about what was not done as asked, such as a seal that
	// the policy refused.
	Notes []string
	// Elapsed is the time from the call to the return.
	Elapsed time.Duration
}

// Progress says how far a run is. Any goroutine may ask at any time, and slows no worker
// down. The zero value is ready for use in one Options.
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

// State is how far a run is: see Progress. The counts are those of the Report so far, and add
// up too. They lag by up to 32 entries a worker. The root counts as skipped until it is written.
type State struct {
	Seen, Written, Right, Vanished, Skipped, Failed int64

	// Found is how many directories were met beneath the root, and Entered how many of them
	// a worker has begun to read.
	Found, Entered int64

	// Path is a directory that is worked on, "" if there is none. It begins with the root as
	// the caller named it; what follows is as hostile as the owner of the tree.
	Path string
	// Call is the system call under way where no directory is worked on, such as syncfs.
	Call string

	waits string // see Work.Waits
}
