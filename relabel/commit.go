// SPDX-License-Identifier: Apache-2.0

package relabel

import "time"

// Commit is what a run left on its root beside the label, when everything bore
// it and nothing had been left alone. A run to another label takes it off, and
// so does one that fails; other programs, which may label the root too, do not.
type Commit struct {
	Label string    // what everything bore; "" if there is no commit
	Began time.Time // the run, to the second
	Ended time.Time
	// Entries were met, and Written of them labelled, by the last run that
	// looked at everything.
	Entries, Written int64
}
