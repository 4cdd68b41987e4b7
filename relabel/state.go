// SPDX-License-Identifier: Apache-2.0

package relabel

import "sync/atomic"

// Progress says how far a run is, to any goroutine that asks, before it begins and
// after it has ended too. Workers do not wait for a caller who asks, but for what it takes to
// copy their counts. The zero value is ready for use in one Options.
type Progress struct {
	state atomic.Pointer[func() State]
}

// State is how far the run is; false before it has begun.
func (p *Progress) State() (State, bool) {
	if state := p.state.Load(); state != nil {
		return (*state)(), true
	}
	return State{}, false
}

// State is how far a run of Tree is: see Progress. The counts are those
// of the Report, so far, and add up like those. They lag by the rows at hand, up
// to 32 entries a worker. The root counts as skipped until it is written.
type State struct {
	Seen, Written, Right, Vanished, Skipped, Failed int64

	// Found is how many directories were met beneath the root, and Entered
	// how many of them a worker has begun to read. What is beneath the others
	// is not known yet.
	Found, Entered int64

	// Path is a directory that is worked on, "" where none is. It begins with
	// the root as the caller named it; what follows is as hostile as the
	// owner of the tree.
	Path string
	// Call is the system call under way where no directory is worked on, such
	// as syncfs; "" if there is none.
	Call string
}
