// SPDX-License-Identifier: Apache-2.0

package flight

import (
	"context"
	"errors"
	"slices"
	"time"
)

// mostKept is how long a failure is kept where work lingers for ever.
const mostKept = 2 * time.Minute

// begin runs w, which is the first of its place. mu is held.
func (g *Group[I, K, D]) begin(w *Work[I, K, D]) {
	for _, o := range g.works {
		if o.ID == w.ID && o.state == kept { // what it says of the place is about to change
			o.state = over
		}
	}
	g.sweep()
	w.state, w.since = running, time.Now()
	ctx, stop := context.WithCancelCause(w.ctx) // it is to outlive all callers
	w.stop = stop
	go g.run(ctx, w)
}

func (g *Group[I, K, D]) run(ctx context.Context, w *Work[I, K, D]) {
	defer w.stop(nil)
	w.held, w.err = g.Run(ctx, w)
	g.end(w)
	if w.held != nil {
		<-w.held.Until
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	close(w.released)
	g.sweep()
}

// end hands out the result of w, and lets the next one begin.
func (g *Group[I, K, D]) end(w *Work[I, K, D]) {
	g.mu.Lock()
	defer g.mu.Unlock()
	close(w.done)
	stopped := w.state == stopping
	w.state = over
	if i := slices.IndexFunc(g.works, func(o *Work[I, K, D]) bool { return o.ID == w.ID && o.state == queued && o.callers > 0 }); i >= 0 {
		g.begin(g.works[i])
		return
	}
	if w.callers > 0 || stopped || errors.Is(w.err, ErrMoved) {
		return
	}
	w.state = kept
	keep := g.Linger
	if keep < 0 {
		keep = mostKept
	}
	time.AfterFunc(keep, func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.drop(w)
	})
}

// cancel ends w before its time. mu is held.
func (g *Group[I, K, D]) cancel(w *Work[I, K, D], why error) {
	switch w.state {
	case queued:
		w.err = why
		close(w.done)
		close(w.released)
		g.drop(w)
	case running, stopping:
		w.state, w.why = stopping, why
		w.stop(why)
	case kept:
		g.drop(w)
	}
}

// drop has the result of w kept no longer. mu is held.
func (g *Group[I, K, D]) drop(w *Work[I, K, D]) {
	w.state = over
	g.sweep()
}

// sweep drops the works that are over and hold nothing. mu is held.
func (g *Group[I, K, D]) sweep() {
	g.works = slices.DeleteFunc(g.works, func(w *Work[I, K, D]) bool { return w.state == over && closed(w.released) })
}
