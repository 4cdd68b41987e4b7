// SPDX-License-Identifier: Apache-2.0

// Package watch tells which calls of a run do not return. Nothing can end a call
// that hangs in the kernel: it can be named, and worked around.
//
// Each goroutine of a run has an Activity and says in it which call comes next; the
// workers of a walk say so in a cheaper way, each through a Worker. One goroutine
// looks at all of them, once every Every; all else may be called by anybody.
//
// There is one limit. A call that has taken half of it has another worker begin in
// place of its own, which has the other half to show that the walk goes on; one that
// has taken all of it hangs. A run that was stopped has half of it to end.
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
	// Grace is how long a run that was stopped is waited for.
	Grace = Limit / 2

	hangs  = int(Limit / Every) // looks
	heldUp = hangs / 2
)

// Call is a call by its name, and what it is made of.
type Call struct{ Call, Path string }

// Activity is what a goroutine of a run does. The zero Activity is not ready: see New.
type Activity struct {
	mu      sync.Mutex
	call    Call // under way; none between calls
	workers iter.Seq[*Worker]

	stalled chan struct{}
	place   place
}

// New is an Activity in no call.
func New() *Activity { return &Activity{stalled: make(chan struct{})} }

// At says which call comes next; with an empty one, that the last has returned.
// It does nothing on nil, which nobody looks at.
func (a *Activity) At(call, path string) {
	if a == nil {
		return
	}
	a.mu.Lock()
	a.call = Call{call, path}
	a.mu.Unlock()
}

// Walk says that these workers are at work in place of the goroutine; with nil, that
// they have ended.
func (a *Activity) Walk(workers iter.Seq[*Worker]) {
	a.mu.Lock()
	a.call, a.workers = Call{}, workers
	a.mu.Unlock()
}

func (a *Activity) now() (Call, iter.Seq[*Worker]) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.call, a.workers
}

// Call is the goroutine's own call that is under way; "" if there is none.
func (a *Activity) Call() string {
	call, _ := a.now()
	return call.Call
}

// UnderWay lists the calls that have not returned.
func (a *Activity) UnderWay() (calls []Call) {
	call, workers := a.now()
	if call != (Call{}) {
		calls = append(calls, call)
	}
	if workers != nil {
		for w := range workers {
			if w.Busy() {
				calls = append(calls, w.Call())
			}
		}
	}
	return calls
}

// Stalled is closed once the activity has not moved for the limit.
func (a *Activity) Stalled() <-chan struct{} { return a.stalled }

// Look says whether the activity moves, and how many of its calls hang; it replaces
// workers that are held up.
func (a *Activity) Look() (moves bool, hung int) {
	call, workers := a.now()
	a.place.look(call)
	switch {
	case workers != nil:
		for w := range workers {
			moves = w.look(&hung) || moves
		}
	case call == Call{}:
	case a.place.age < hangs:
		moves = true
	default:
		hung = 1
	}
	if hung > 0 && !moves {
		select {
		case <-a.stalled:
		default:
			close(a.stalled)
		}
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
