// SPDX-License-Identifier: Apache-2.0

package run

import (
	"iter"
	"sync"
	"sync/atomic"
	"time"
)

// One goroutine looks at all others of a run, once every Every.
//
// A worker whose call has taken half of Limit is replaced, and its replacement has the other
// half to show that the walk continues. A call that has taken all of it hangs. A stopped run has
// half of it to end: two looks.
const (
	// Limit is the time after which a call hangs.
	Limit = time.Second
	// Every is the time between two looks at a run.
	Every = Limit / 4

	hangs  = int(Limit / Every) // looks
	heldUp = hangs / 2
)

// Call is a system call and the path that it was made for.
type Call struct{ Call, Path string }

// Watched is a goroutine of a run. Any goroutine may call its methods.
type Watched interface {
	Busy() bool    // it is in a call
	Place() any    // changes when it moves
	Call() Call    // the call under way; the zero Call between calls
	Replace() bool // begins another one in its place, if there can be one
	Seen() *Seen
}

// Seen has what the looks at a goroutine have found.
type Seen struct {
	// HeldUp is true until it moves, once it was to be replaced.
	HeldUp   atomic.Bool
	replaced bool
	last     any // its place
	age      int // looks without a change of that
}

// Look reports whether any moves, and how many calls hang; it replaces those that are held up.
func Look(all iter.Seq[Watched]) (moves bool, hung int) {
	for w := range all {
		busy, seen := w.Busy(), w.Seen() // busy first: one that begins to be so has moved before
		seen.age++
		if now := w.Place(); now != seen.last {
			seen.last, seen.age = now, 0
			seen.HeldUp.Store(false)
			seen.replaced = false
		}
		if !busy {
			continue
		}
		if seen.age >= heldUp && !seen.replaced {
			seen.HeldUp.Store(true)
			seen.replaced = w.Replace()
		}
		if seen.age < hangs {
			moves = true
		} else {
			hung++
		}
	}
	return moves, hung
}

// UnderWay lists the calls that have not returned.
func UnderWay(all iter.Seq[Watched]) (calls []Call) {
	for w := range all {
		if w.Busy() {
			if call := w.Call(); call.Call != "" { // it may have returned by now
				calls = append(calls, call)
			}
		}
	}
	return calls
}

// Repeat calls f once every so often, until end is called, which waits for it.
func Repeat(every time.Duration, f func()) (end func()) {
	var mu sync.Mutex // guards the timer
	var timer *time.Timer
	mu.Lock()
	defer mu.Unlock()
	timer = time.AfterFunc(every, func() {
		mu.Lock()
		defer mu.Unlock()
		if timer != nil {
			f()
			timer.Reset(every)
		}
	})
	return func() {
		mu.Lock()
		defer mu.Unlock()
		timer.Stop()
		timer = nil
	}
}

// Activity is the Watched of a goroutine that is no worker. The zero value is in no call.
type Activity struct {
	mu   sync.Mutex
	call Call
	seen Seen
}

// At says which call comes next; with "", that the last has returned.
func (a *Activity) At(call, path string) {
	a.mu.Lock()
	a.call = Call{call, path}
	a.mu.Unlock()
}

// Call returns the call that is under way.
func (a *Activity) Call() Call {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.call
}

// Busy is of Watched, as are the others.
func (a *Activity) Busy() bool { return a.Call().Call != "" }

// Place changes with the call.
func (a *Activity) Place() any { return a.Call() }

// Replace does nothing: only a worker is replaced.
func (a *Activity) Replace() bool { return false }

// Seen returns what the looks at a have found.
func (a *Activity) Seen() *Seen { return &a.seen }
