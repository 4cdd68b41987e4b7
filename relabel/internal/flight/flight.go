// SPDX-License-Identifier: Apache-2.0

// Package flight has a thing done once at a time in each place, however many callers
// ask for it. A caller joins the work that is under way, leaves it when its context
// ends, and comes back to it. What the work is, and what a place is,
// it is told: relabel.Group has trees labelled by it.
//
// # The states of a work
//
//	asked for ─▶ queued ─▶ running ──────────┬─▶ kept ─▶ over
//	               │          └─▶ stopping ──┤            ▲
//	               └─────────────────────────┴────────────┘
//
// The first work of a place runs, and the others are queued. One that is stopping
// is not joined. One that is left in the queue keeps its place, and does not begin: what no
// caller waits for would undo what another was told is done. An end of which no caller was
// told is kept until one asks, something else begins in the place, or Linger has passed: a
// failure is handed out, and after a success the work begins anew, Again. A work that is over
// is dropped when its run holds nothing open.
//
// # Who owns what
//
// Each run has a goroutine, which alone writes Data and the error of its work until it
// closes done; from then on all may read them. Each look at a root has a goroutine too,
// and its answer is handed over in the same way. All else is guarded by Group.mu, which
// is never held while the Group's functions run: they may take for ever. There is no
// other goroutine: Linger is a timer.
//
// # Which orderings hold, and what breaks otherwise
//
// 1. A caller finds a work and is counted in it under one hold of mu, and a
// work that nobody waits for is given up under one hold too. With a gap:
//
//	caller                     timer
//	finds the work
//	                           nobody is counted: stops it
//	is counted, waits
//
// and the caller would be told that another one cancelled it.
//
// 2. A timer that fires may come late to mu, after a caller has joined and left
// again. It then belongs to an absence that is over, which Work.absence tells from the
// next one. Else the second absence would end with the first one's time.
//
// 3. The end of a run and the beginning of the next one are one hold of mu. A work
// begins only if none is under way in its place, so a place has one run.
//
// 4. The root is looked at after its caller arrived, and the run makes sure that
// the place it works in is the one that was looked at (ErrMoved): else its callers look
// again. A caller who arrives during a look waits for the next one, which all who wait
// share. Else one who called after the root was given to another place would join the
// work in the old one. One look at a time, root and key, because each that hangs costs
// a thread, and callers on dead storage come back every two minutes.
//
// 5. Stop marks the callers who have arrived and what is in the queue under one hold of
// mu. A caller is among the arrivals until it is counted in a work.
//
// # What was rejected
//
// Options for each call: a caller who joins gets what the first one asked for, or every
// option becomes part of the key. Two groups serve two kinds of caller, and the volume's
// lock keeps their runs apart.
//
// Handing out a success that was kept: it has to be confirmed on the root, which is what the
// run that begins anew does.
//
// Giving up the linger as soon as another key waits: two callers that take
// turns would stop each other's work for ever.
package flight

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/fastlabel/fastlabel/relabel/internal/watch"
)

// ErrMoved is the error of a run that did not find the place that was looked at.
var ErrMoved = errors.New("another directory lies there by now")

// Group is the work in all places: I tells one from another, K is what is to be done
// there, and D what the run says of itself. The exported fields are set before the
// first call.
type Group[I, K comparable, D any] struct {
	// At tells which place root is. It tells call what it does, and may hang.
	At func(call *watch.Activity, root string) (I, error)
	// Run does w until ctx ends. Held, if not nil, is what is still open then.
	Run func(ctx context.Context, w *Work[I, K, D]) (*Held, error)
	// Hung is the error for a caller whose root has not been looked at.
	Hung func(calls []watch.Call, cause error) error
	// Linger is how long work without a caller is not stopped: below 0, for ever. A
	// failure is kept as long, or for mostKept.
	Linger time.Duration

	mu       sync.Mutex
	works    []*Work[I, K, D] // as they were asked for, until they are over and hold nothing
	looks    map[place[K]]*look[I, K, D]
	arrivals map[*arrival]bool
	shut     error // why, once there is no more work
}

// Work is one run: before, during and after it.
type Work[I, K comparable, D any] struct {
	ID   I
	Root string // as the first caller named it
	Key  K
	Data D // belongs to Run until it has returned; zero before
	// Again says that the same was done lately, when no caller waited to be told.
	Again bool

	state    state
	done     chan struct{} // closed when it has ended
	err      error
	held     *Held
	released chan struct{} // closed when nothing is open any more

	ctx     context.Context // of the first caller, without its end
	since   time.Time       // when it began or, before that, was asked for
	stop    context.CancelCauseFunc
	why     error // of a stop; written before done is closed
	shared  bool  // more calls than one asked for it
	callers int
	absence int // how often it was left by all
}

// state is what has become of a work; it never goes back.
type state int

const (
	queued   state = iota
	running        // callers join it until here
	stopping       // it was cancelled
	kept           // it has ended when no caller waited: the next is told of a failure
	over           // it has ended, and its result is for callers who waited
)

// Held is what a run that has returned still holds, beside calls that hang.
type Held struct {
	Until <-chan struct{}         // closed when that is nothing
	Error func(cause error) error // of a caller who waits for that in vain
}

// View is how a work stands.
type View[I, K comparable, D any] struct {
	*Work[I, K, D]
	Since   time.Time // when it began or, if it has not, was asked for
	Callers int       // how many wait for it
	After   *K        // what is under way in its place; nil if that is this work
	Shared  bool      // more calls than one asked for it
	Ended   bool
	Kept    bool // it had ended when the caller of Do arrived
}

// Do has key done at root, or joins the work that does it. If ctx ends first the error
// says why, and the View, unless it is zero, how far the work is; it is not over. Else
// the error is the run's, or that of the look at root, beside which the View is zero.
func (g *Group[I, K, D]) Do(ctx context.Context, root string, key K) (View[I, K, D], error) {
	for {
		w, ended, err := g.arrive(ctx, place[K]{root, key})
		if err != nil {
			return View[I, K, D]{}, err
		}
		select {
		case <-w.done:
		case <-ctx.Done():
		}
		v := g.leave(w)
		if !v.Ended {
			return v, ending(ctx)
		}
		if errors.Is(w.err, ErrMoved) && w.why != nil {
			return View[I, K, D]{}, w.why // it was stopped, and is not looked for elsewhere
		}
		if !errors.Is(w.err, ErrMoved) {
			v.Kept = ended
			return v, w.err
		}
	}
}

// Works are those in the queue and under way.
func (g *Group[I, K, D]) Works() (all []View[I, K, D]) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, w := range g.works {
		if w.state <= stopping {
			all = append(all, g.view(w))
		}
	}
	return all
}

// arrive finds or begins the work that a caller waits for, if it has not ended.
func (g *Group[I, K, D]) arrive(ctx context.Context, p place[K]) (w *Work[I, K, D], ended bool, err error) {
	if ctx.Err() != nil {
		return nil, false, ending(ctx)
	}
	a, err := g.register(p.root)
	if err != nil {
		return nil, false, err
	}
	l, err := g.look(ctx, a, p)
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.arrivals, a)
	if a.why != nil {
		return nil, false, a.why
	}
	if err != nil {
		return nil, false, err
	}
	w = g.join(ctx, l, p)
	return w, w.state >= kept, nil
}

// join finds or begins the work that the caller waits for, and counts the
// caller. The work may have ended. mu is held.
func (g *Group[I, K, D]) join(ctx context.Context, l *look[I, K, D], p place[K]) *Work[I, K, D] {
	again := false
	for _, w := range g.works {
		switch {
		case w.ID != l.id || w.Key != p.key:
			continue
		case w.state <= running:
			w.callers++
			if w.state == queued && g.underWay(w.ID) == nil { // it was left when its turn came
				g.begin(w)
			}
		case w.state == kept && w.err == nil: // which a new work drops, when it begins
			again = true
			continue
		case w.state == kept:
			g.drop(w)
		default:
			continue
		}
		w.shared = true
		return w
	}
	w := &Work[I, K, D]{
		ID: l.id, Root: p.root, Key: p.key, Again: again, callers: 1, since: time.Now(), ctx: context.WithoutCancel(ctx),
		done: make(chan struct{}), released: make(chan struct{}),
	}
	g.works = append(g.works, w)
	if g.underWay(w.ID) == nil {
		g.begin(w)
	}
	return w
}

// leave is for a caller who waits no longer, since the work or the caller's time has
// ended.
func (g *Group[I, K, D]) leave(w *Work[I, K, D]) View[I, K, D] {
	g.mu.Lock()
	defer g.mu.Unlock()
	if w.state <= stopping {
		if w.callers--; w.callers == 0 && g.Linger >= 0 {
			w.absence++
			absence := w.absence
			time.AfterFunc(g.Linger, func() { g.giveUp(w, absence) })
		}
	}
	return g.view(w)
}

// giveUp ends work that nobody has waited for since the absence began.
func (g *Group[I, K, D]) giveUp(w *Work[I, K, D], absence int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if w.callers == 0 && w.absence == absence && w.state <= running {
		g.cancel(w, nil)
	}
}

// underWay is the work that runs in a place. mu is held.
func (g *Group[I, K, D]) underWay(id I) *Work[I, K, D] {
	for _, w := range g.works {
		if w.ID == id && (w.state == running || w.state == stopping) {
			return w
		}
	}
	return nil
}

// view is how w stands. mu is held.
func (g *Group[I, K, D]) view(w *Work[I, K, D]) View[I, K, D] {
	v := View[I, K, D]{Work: w, Since: w.since, Callers: w.callers, Shared: w.shared, Ended: w.state >= kept}
	if first := g.underWay(w.ID); w.state == queued && first != nil {
		v.After = &first.Key
	}
	return v
}

// ending is why ctx ended: the cause, and what errors.Is is asked for.
func ending(ctx context.Context) error {
	if cause := context.Cause(ctx); !errors.Is(cause, ctx.Err()) {
		return fmt.Errorf("%w: %w", ctx.Err(), cause)
	}
	return context.Cause(ctx)
}

// closed says whether c is.
func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
