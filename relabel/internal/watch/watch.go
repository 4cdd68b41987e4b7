// SPDX-License-Identifier: Apache-2.0

// Package watch tells which calls of a run do not return. Nothing can end a call
// that hangs in the kernel: it can be named, and worked around.
//
// Each goroutine of a run has an Activity and says in it which call comes next; the
// workers of a walk say so in a cheaper way, each through a Worker. One goroutine
// looks at all of them, once every Every; all else may be called by any goroutine.
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

// Activity is what a goroutine of a run does. The zero Activity is in no call.
type Activity struct {
	mu    sync.Mutex
	call  Call // under way; none between calls
	place place
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

// Now is the goroutine's own call that is under way, if there is one.
func (a *Activity) Now() Call {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.call
}

// UnderWay lists the calls that have not returned: the goroutine's own, and those of
// the workers for which it waits.
func (a *Activity) UnderWay(workers iter.Seq[*Worker]) (calls []Call) {
	if call := a.Now(); call != (Call{}) {
		calls = append(calls, call)
	}
	for w := range workers {
		if w.Busy() {
			calls = append(calls, w.Call())
		}
	}
	return calls
}

// Look says whether the activity moves, or its workers do, and how many of its calls
// hang; it replaces workers that are held up.
func (a *Activity) Look(workers iter.Seq[*Worker]) (moves bool, hung int) {
	call := a.Now()
	a.place.look(call)
	switch {
	case call == Call{}:
	case a.place.age < hangs:
		moves = true
	default:
		hung = 1
	}
	for w := range workers {
		moves = w.look(&hung) || moves
	}
	return moves, hung
}

// Worker is a worker of a walk as it is looked at. The functions may be called from
// any goroutine.
type Worker struct {
	Busy    func() bool // it is in a call
	Place   func() any  // differs from what it was, once it has moved
	Call    func() Call
	Replace func() bool // has another worker begin in its place

	// HeldUp is true until it moves, once it was to be replaced.
	HeldUp   atomic.Bool
	place    place
	replaced bool
}

func (w *Worker) look(hung *int) (moves bool) {
	busy := w.Busy() // first: one that begins to be busy has moved before
	w.place.look(w.Place())
	if w.place.age == 0 {
		w.HeldUp.Store(false)
		w.replaced = false
	}
	if !busy {
		return false
	}
	if w.place.age >= heldUp && !w.replaced {
		w.HeldUp.Store(true)
		w.replaced = w.Replace()
	}
	if w.place.age >= hangs {
		*hung++
		return false
	}
	return true
}

// place is where something was seen last.
type place struct {
	last any
	age  int // looks without a change
}

func (p *place) look(now any) {
	p.age++
	if now != p.last {
		p.last, p.age = now, 0
	}
}
