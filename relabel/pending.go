// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"fmt"
	"strconv"
	"time"
)

// Work is a relabel of a Group, in the queue or under way.
type Work struct {
	Root    string        // as the first caller named it
	Label   string        // in canonical form
	Trust   Trust         // as the callers asked for it
	Entries int64         // met so far
	Elapsed time.Duration // since it began or, if it has not, since it was asked for
	Callers int           // how many wait for it; none while it lingers
	Waits   string        // what holds it up, for people; "" if nothing is known to
}

func (p Work) String() string {
	s := "after " + p.Elapsed.Round(time.Second).String()
	if p.Entries == 1 {
		s = "1 entry " + s
	} else if p.Entries > 0 {
		s = thousands(p.Entries) + " entries " + s
	}
	if p.Waits != "" {
		s += ", waiting for " + p.Waits
	}
	return s
}

// thousands sets commas: the numbers are for people who wait.
func thousands(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// PendingError is the error for a caller of Group.Tree whose context ended before
// the work did. The work goes on.
type PendingError struct {
	Work
	// Within is how soon a caller must ask again for the work to go on; 0 if
	// it goes on to its end whether or not one does.
	Within time.Duration
	Cause  error // why the caller left
}

func (e *PendingError) Error() string {
	s := fmt.Sprintf("%q: relabelling goes on: %v; ask again", e.Root, e.Work)
	if e.Within > 0 {
		s += " within " + e.Within.String()
	}
	return s
}

// Unwrap is why the caller left.
func (e *PendingError) Unwrap() error { return e.Cause }
