// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"context"
	"runtime"

	"github.com/fastlabel/fastlabel/relabel/internal/steal"
)

// pacedRow is how many names are a row where the caller holds the work back: at
// ten entries a second, a worker asks about once a second.
const pacedRow = 8

// sum adds what w has counted to the run's total, at the end of its walk: at no
// time is it in neither, or in both.
func (r *run) sum(w *worker) {
	r.mu.Lock()
	defer r.mu.Unlock()
	w.countsMu.Lock()
	defer w.countsMu.Unlock()
	r.total.add(w.shown)
	w.summed = true
}

// state is how far the run is. Locks are taken in the order run, worker;
// nobody holds one of them while it makes a call.
func (r *run) state() State {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := r.live()
	var at *dir
	s := State{LastRun: r.lastRun.Load()}
	for _, t := range r.tasks {
		if s.Call == "" {
			s.Call = t.Now().Call
		}
		for w := range t.crew.Load().all {
			if at == nil {
				at = w.in.Load()
			}
		}
	}
	s.Seen, s.Written, s.Right = t.seen, t.of[written], t.of[right]
	s.Vanished, s.Skipped, s.Failed = t.of[vanished], t.of[skipped], t.of[failure]
	s.Found, s.Entered = max(t.found, t.entered), t.entered // who found one may tell later than who entered it
	if at != nil {                                          // not the name of an entry: that may be overwritten meanwhile
		s.Path, s.Call = at.path(""), ""
	}
	return s
}

// live is what was counted so far, also by workers that are under way. mu is held.
func (r *run) live() tally {
	t := r.total
	for _, task := range r.tasks {
		for w := range task.crew.Load().all {
			w.countsMu.Lock()
			if !w.summed {
				t.add(w.shown)
			}
			w.countsMu.Unlock()
		}
	}
	return t
}

// throttle asks the caller. If ctx ends meanwhile it returns once the pool is stopped.
func (t *throttler) throttle(ctx context.Context, p *steal.Worker[item], entries int) {
	t.ask(entries)
	for ctx.Err() != nil && !p.Stopped() {
		runtime.Gosched()
	}
}

// pace waits until the caller permits so many entries more. The worker is in no call
// during that, and is not replaced.
func (w *worker) pace(entries int) {
	w.paused.Store(true)
	w.throttle(entries)
	w.pauses.Add(1) // first: for whoever looks, it has moved
	w.paused.Store(false)
}
