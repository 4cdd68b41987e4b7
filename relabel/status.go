// SPDX-License-Identifier: Apache-2.0

package relabel

import "time"

// Status is what a root says of the tree beneath it: see Inspect.
type Status struct {
	// Label is the root's own label; "" if it has none.
	Label string
	// Labelled says that what was asked for has the label.
	Labelled bool
	// Interrupted says that a relabel to the label did not complete, or is at work.
	Interrupted bool
	// Shards are how many are at work for the label, or were, and Proved how many of
	// them have left their proof; 0 if it is one run.
	Shards, Proved int
	// Commit is what the last run left there.
	Commit Commit
}

// Commit is what a run left on its root beside the label, when everything had
// it and nothing had been left alone. A run to another label takes it off, and
// so does one that fails; other programs, which may label the root too, do not.
// It is the zero Commit if there is none, or if the caller lacks CAP_SYS_ADMIN,
// without which it cannot be read.
type Commit struct {
	Label string    // what everything had; "" if there is no commit
	Began time.Time // the run, to the second
	Ended time.Time
	// Entries were met, and Written of them labelled, by the last run that
	// looked at everything.
	Entries, Written int64
}
