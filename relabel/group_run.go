// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// begin runs the first of a queue. mu is held.
func (g *Group) begin(w *work) {
	w.volume.kept = nil // the root is about to change
	w.since = time.Now()
	// It is to outlive all callers.
	ctx, stop := context.WithCancelCause(w.ctx)
	w.stop = stop
	go g.run(ctx, w)
}

func (g *Group) run(ctx context.Context, w *work) {
	defer w.stop(nil)
	ended := make(chan struct{})
	o := g.options(w)
	o.Progress = w.far
	o.inner = inner{at: &w.volume.id, ended: sync.OnceFunc(func() { close(ended) })}
	w.report, w.err = g.calls.orReal().tree(ctx, w.root, w.label, o)
	if !errors.As(w.err, new(*HungError)) {
		o.inner.ended() // there is nothing that could be held
	}
	g.end(w)
	<-ended
	g.mu.Lock()
	defer g.mu.Unlock()
	close(w.released)
	v := w.volume
	v.behind = slices.DeleteFunc(v.behind, func(o *work) bool { return o == w })
	g.drop(v)
}

// end hands out the result of w, and lets the next one begin.
func (g *Group) end(w *work) {
	g.mu.Lock()
	defer g.mu.Unlock()
	close(w.done)
	w.far = nil // it holds what the run had
	v := w.volume
	v.behind = append(v.behind, w)
	v.queue = slices.Delete(v.queue, 0, 1)
	if len(v.queue) > 0 {
		g.begin(v.queue[0])
		return
	}
	v.kept = w
	told := w.err != nil && (w.callers > 0 || errors.Is(w.err, errMoved))
	if told || w.stopped || w.left == 0 {
		g.forget(w)
		return
	}
	time.AfterFunc(or(g.Keep), func() { // below 0: at once
		g.mu.Lock()
		defer g.mu.Unlock()
		g.forget(w)
	})
}

// options are the Group's, with what holds a run up noted for Progress.
func (g *Group) options(w *work) Options {
	o := g.Options
	if g.Trace != nil {
		o.Trace = g.Trace(w.root)
	}
	var trace Trace
	if o.Trace != nil {
		trace = *o.Trace
	}
	wait, stall := trace.Wait, trace.Stall
	note := func(format string, args ...any) {
		g.mu.Lock()
		defer g.mu.Unlock()
		w.waits, w.heldUp = fmt.Sprintf(format, args...), w.seen()
	}
	trace.Wait = func(holder string) {
		note("the volume's lock, held by %s", holder)
		if wait != nil {
			wait(holder)
		}
	}
	trace.Stall = func(calls []HungCall) {
		if len(calls) > 0 {
			note("%d calls of the filesystem, one of them %s", len(calls), calls[0])
		}
		if stall != nil {
			stall(calls)
		}
	}
	o.Trust, o.Trace = w.trust, &trace
	return o
}

// forget drops the result of w, and its volume with it if there is no more. mu
// is held.
func (g *Group) forget(w *work) {
	if v := w.volume; v.kept == w {
		v.kept = nil
		g.drop(v)
	}
}

// drop forgets a volume of which nothing is left. mu is held.
func (g *Group) drop(v *volume) {
	if v.kept == nil && len(v.queue)+len(v.behind) == 0 {
		g.volumes = slices.DeleteFunc(g.volumes, func(o *volume) bool { return o == v })
	}
}
