// SPDX-License-Identifier: Apache-2.0

package relabel

// State is how far a run of Tree is: see Options.OnBegin. The counts are those
// of the Report, so far, and add up like those. They lag by the rows at hand, up
// to 32 entries a worker. The root counts as skipped until it is written.
type State struct {
	Seen, Written, Right, Vanished, Skipped, Failed int64

	// Found is how many directories were met beneath the root, and Entered
	// how many of them somebody has begun to read. What is beneath the others
	// is not known yet.
	Found, Entered int64

	// LastRun is how many entries there were for the last run that looked at all,
	// by its mark (see Commit). It is 0 if there is no mark, or if this run looks
	// at less.
	LastRun int64

	// Path is a directory that is worked on, "" where none is. It begins with
	// the root as the caller named it; what follows is as hostile as whoever
	// owns the tree.
	Path string
	// Call is the system call under way where no directory is worked on, such
	// as syncfs; "" if there is none.
	Call string
}
