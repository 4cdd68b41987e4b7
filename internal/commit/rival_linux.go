// SPDX-License-Identifier: Apache-2.0

package commit

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"time"
)

// Of two runs that share no lock, as from pods with a /run of their own, one finds the other's
// claim. It puts its own in its place and waits until the other, if it is still at work, has
// noticed: each run looks at its root before the commit, after the second reading, and four
// times a second in between; where such a look is late, it writes nothing until that has ended.
//
//	A: creates its claim, seals ....... looks: not its own, stops
//	B:        finds it, puts its own, seals ....... walks, commits
//
// A run that finds the root right leaves no claim there. But it writes what it finds wrong, and
// that is what a rival has just written. When it notices that the root is not its own any more, and
// it has written anything, it seals the root again with its claim, so that the rival notices in
// turn, at most a lease after the last write: a rival that was committed in that time has said that
// it is done, and its root is sealed. A lock on the root would show the two to each other, but it is
// the lock of the application that the volume belongs to.
const (
	// Every is the longest time between two looks of a run at its root.
	Every = 250 * time.Millisecond
	// Noticed is the wait of a run for another whose claim it has replaced.
	Noticed = 4 * Every
	// lease limits the time that a run writes after a look at its root began: less than
	// Noticed, for the call under way has to end too.
	lease = 3 * Every
)

// ErrLate is the answer of Ours where a look at the top directory takes long.
var ErrLate = errors.New("a look at the top directory takes long")

// Ours is asked before something is written, by any goroutine. It is nil if a look at the root that
// began lately found it ours: no other run has waited long enough to be at work by now. One of
// those who ask looks itself, four times a second.
func (c *Root) Ours() error {
	now := time.Now().UnixNano()
	last := c.looked.Load()
	since := time.Duration(now - last) // less than nothing where the clock was put back
	if (since < 0 || since >= Every) && c.looked.CompareAndSwap(last, now) {
		if err := c.look(); errors.Is(err, ErrOvertaken) {
			return err
		}
		return nil // after another error it would not help to wait: the commit fails if it lasts
	}
	if since := time.Duration(now - c.sure.Load()); since < 0 || since >= lease {
		return ErrLate
	}
	return nil
}

// look is an error if the root has another label than this run left on it, or a claim to one.
func (c *Root) look() error {
	began, left := time.Now().UnixNano(), c.is.Load()
	label, err := c.read()
	is := label == left.label || label == c.Want
	if err == nil && is && left.claim {
		var k claim
		var found bool
		k, found, err = c.claimed()
		is = !found || k.want == c.Want
	}
	if err != nil || is {
		c.sure.Store(began)
		return err
	}
	return &fs.PathError{Op: "relabel", Path: c.Path, Err: fmt.Errorf("%w: the top directory now has %s; when that one has ended run this again", ErrOvertaken, cmp.Or(label, "no label"))}
}
