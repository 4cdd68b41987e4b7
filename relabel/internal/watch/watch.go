// SPDX-License-Identifier: Apache-2.0

// Package watch tells which calls of a run do not return. Nothing can end a call
// that hangs in the kernel: it can be named, and worked around.
//
// Each goroutine of a run has an Activity and says in it which call comes next; the
// workers of a walk say so in a cheaper way. One goroutine looks at all of them, once
// every Every; all else may be called by any goroutine.
//
// There is one limit. A call that has taken half of it has another worker begin in
// place of its own, which has the other half to show that the walk goes on; one that
// has taken all of it hangs. A run that was stopped has half of it to end: two looks.
package watch

import (
	"iter"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// Limit is how long a call takes that hangs.
	Limit = time.Second
	// Every is how often a run is looked at.
	Every = Limit / 4

	hangs  = int(Limit / Every) // looks
	heldUp = hangs / 2
)

// Call is a call by its name, and what it is made of.
type Call struct{ Call, Path string }

// Watched is a goroutine as it is looked at. All may be called by any goroutine.
type Watched interface {
	Busy() bool    // it is in a call
	Place() any    // differs from what it was, once it has moved
	Call() Call    // where it is, if it is in one
	Replace() bool // has another one begin in its place, if there can be one
	Seen() *Seen
}

// Seen is what the looks at a goroutine have found.
type Seen struct {
	// HeldUp is true until it moves, once it was to be replaced.
	HeldUp   atomic.Bool
	replaced bool
	last     any // its place
	age      int // looks without a change of that
}

// Look says whether any of them moves, and how many of their calls hang; it replaces
// those that are held up.
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

// Activity is what a goroutine of a run does that is no worker. The zero Activity is in no
// call.
type Activity struct {
	mu   sync.Mutex
	call Call // under way; none between calls
	seen Seen
}

// At says which call comes next; with an empty one, that the last has returned.
// It does nothing on nil, which is not looked at.
func (a *Activity) At(call, path string) {
	if a == nil {
		return
	}
	a.mu.Lock()
	a.call = Call{call, path}
	a.mu.Unlock()
}

// Call is the call that is under way, if there is one.
func (a *Activity) Call() Call {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.call
}

// Own is the activity itself, as it is looked at.
func (a *Activity) Own() Watched { return watched{a} }

type watched struct{ *Activity }

func (w watched) Busy() bool    { return w.Call() != Call{} }
func (w watched) Place() any    { return w.Call() }
func (w watched) Replace() bool { return false }
func (w watched) Seen() *Seen   { return &w.seen }
