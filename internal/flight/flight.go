// SPDX-License-Identifier: Apache-2.0

// Package flight has a thing done once at a time in each place, however many callers
// ask for it. A caller joins the work that is under way, leaves it when its context
// ends, and comes back to it. relabel.Group has trees labelled by it.
//
//	asked for ─▶ queued ─▶ running ─▶ ended
//
// One work of a place runs, and the others are queued. One that no caller waits for keeps its
// place in the queue, and does not begin: it would undo what another caller knows is done.
//
// What ends without a caller is kept until one asks, for Linger, or until something else begins in
// its place. A failure is handed out. After a success the work begins anew, Again.
//
// # Who owns what
//
// Each run has a goroutine, which alone writes Data, and so has each look at a root. All else is
// guarded by Group.mu; the error of a work and the answer of a look may also be read once done is
// closed. mu is not held while At or Run is under way, which may take for ever.
//
// # Which orderings hold, and what breaks otherwise
//
// 1. A caller is counted in a work under the hold of mu in which it finds the work, and a work that
// nobody waits for is given up under one hold too. Else a timer could stop the work between the
// two, and the caller would see that another one cancelled it.
//
// 2. A timer may come late to mu, after a caller has joined and left again: Work.absence
// is another one then.
//
// 3. The end of a run and the beginning of the next one are one hold of mu, so a place has one run.
//
// 4. Each caller has its own look at the root, and the run makes sure that the place it works in is
// the one that was looked at (ErrMoved): else its callers look again. Else one who called after
// the root was given to another place would join the work in the old one.
//
// 5. Stop marks the callers whose look is under way and what is in the queue under one hold of mu.
// The look of a caller is in the list until the caller is counted in a work.
//
// Rejected: to give up the linger as soon as another key waits, for two callers that take turns would
// stop each other's work for ever.
package flight

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// ErrMoved is the error of a run that did not find the place that was looked at.
var ErrMoved = errors.New("another directory lies there by now")

// Group is the work in all places: I names one, K is what is to be done
// there, and D what the run says of itself. The exported fields are set before the
// first call.
type Group[I, K comparable, D any] struct {
	// At returns the place that root is, and completes a caller's key by what it finds there. It may hang.
	At func(root string, key K) (I, K, error)
	// Run does w until ctx ends. It has w.Released called when nothing is open any more:
	// before it returns or, where a call hangs, later.
	Run func(ctx context.Context, w *Work[I, K, D]) error
	// Hung is the error for a caller who waits in vain for the filesystem of root: for At or,
	// beside the error of a run, for what that has left open.
	Hung func(root string, run, cause error) error
	// Linger is the time after which work without a caller is stopped. What ends without a caller
	// is kept as long.
	Linger time.Duration

	mu    sync.Mutex
	works []*Work[I, K, D] // as they were asked for, until they are over and hold nothing
	looks []*look[I, K]
	shut  error // why, once there is no more work
}

// Work is one run: before, during and after it.
type Work[I, K comparable, D any] struct {
	ID   I
	Root string // as the first caller named it
	Key  K
	Data D // belongs to Run until it has returned; zero before
	// Again says that the same was done lately, when no caller waited.
	Again bool
	// Released is called by Run when nothing is open any more.
	Released func()

	ctx      context.Context // of the run; callers join until it ends
	stop     context.CancelCauseFunc
	state    state
	done     chan struct{} // closed when it has ended
	err      error
	released chan struct{} // closed when nothing is open any more

	since   time.Time // when it began or, before that, was asked for
	shared  bool      // more calls than one asked for it
	callers int
	absence int // how often it was left by all
}

// state is that of a work; it never goes back.
type state int

const (
	queued state = iota
	running
	ended
)

// View shows a work to its callers.
type View[I, K comparable, D any] struct {
	*Work[I, K, D]
	Since   time.Time // when it began or, if it has not, was asked for
	Callers int       // how many wait for it
	After   *K        // what is under way in its place; nil if that is this work
	Shared  bool      // more calls than one asked for it
	Ended   bool
}

// Do has key done at root, or joins the work that does it. If ctx ends first the error
// says why, and the View, unless it is zero, how far the work is; it is not over. Else
// the error is the run's, or that of the look at root, beside which the View is zero.
func (g *Group[I, K, D]) Do(ctx context.Context, root string, key K) (View[I, K, D], error) {
	for {
		w, err := g.arrive(ctx, root, key)
		if err != nil {
			return View[I, K, D]{}, err
		}
		await(ctx, w.done)
		v := g.leave(w)
		if !v.Ended {
			return v, ending(ctx)
		}
		if !errors.Is(w.err, ErrMoved) {
			return v, w.err
		}
	}
}

// Works are those in the queue and under way.
func (g *Group[I, K, D]) Works() (all []View[I, K, D]) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, w := range g.works {
		if w.state != ended {
			all = append(all, g.view(w))
		}
	}
	return all
}

// arrive finds or begins the work that a caller waits for. It may have ended.
func (g *Group[I, K, D]) arrive(ctx context.Context, root string, key K) (*Work[I, K, D], error) {
	mine, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut != nil {
		return nil, g.shut
	}
	l, err := g.look(mine, root, key, stop)
	if mine.Err() != nil && ctx.Err() == nil { // it was stopped
		return nil, context.Cause(mine)
	}
	if err = cmp.Or(err, l.err); err != nil {
		return nil, err
	}
	return g.join(l.id, root, l.key), nil
}

type look[I, K any] struct {
	root string
	stop context.CancelCauseFunc // of the caller who waits for it
	done chan struct{}           // closed when the root is not open any more
	left bool                    // the caller waits no longer
	id   I
	key  K
	err  error
}

// look asks which place root is, and waits no longer than ctx. mu is held, but while it waits.
func (g *Group[I, K, D]) look(ctx context.Context, root string, key K, stop context.CancelCauseFunc) (l look[I, K], err error) {
	if ctx.Err() != nil {
		return l, ending(ctx)
	}
	under := &look[I, K]{root: root, stop: stop, done: make(chan struct{})}
	g.looks = append(g.looks, under)
	drop := func() { g.looks = slices.DeleteFunc(g.looks, func(o *look[I, K]) bool { return o == under }) }
	go func() {
		under.id, under.key, under.err = g.At(root, key)
		g.mu.Lock()
		defer g.mu.Unlock()
		if close(under.done); under.left {
			drop()
		}
	}()
	g.mu.Unlock()
	answered := await(ctx, under.done)
	g.mu.Lock()
	if under.left = true; closed(under.done) {
		drop()
	}
	if !answered {
		return l, g.Hung(root, nil, ending(ctx))
	}
	return *under, nil
}

// join finds or begins a work, and counts its caller. mu is held.
func (g *Group[I, K, D]) join(id I, root string, key K) *Work[I, K, D] {
	again := false
	for _, w := range g.works {
		if w.ID != id || w.Key != key || w.ctx.Err() != nil {
			continue
		}
		if w.state == ended && w.err == nil {
			again = true
			continue // it is dropped when the new work begins
		}
		w.shared = true
		if w.state == ended {
			g.cancel(w, nil)
		} else {
			w.callers++
			g.serve(id) // it may have been left when its turn came
		}
		return w
	}
	w := &Work[I, K, D]{
		ID: id, Root: root, Key: key, Again: again, callers: 1, since: time.Now(),
		done: make(chan struct{}), released: make(chan struct{}),
	}
	w.ctx, w.stop = context.WithCancelCause(context.Background()) // it is to outlive all callers
	w.Released = func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		close(w.released)
		g.sweep()
	}
	g.works = append(g.works, w)
	g.serve(id)
	return w
}

// serve begins the first work of a place that callers wait for, unless one runs. mu is held.
func (g *Group[I, K, D]) serve(id I) {
	i := slices.IndexFunc(g.works, func(w *Work[I, K, D]) bool { return w.ID == id && w.state == queued && w.callers > 0 })
	if i < 0 || g.underWay(id) != nil {
		return
	}
	w := g.works[i]
	for _, o := range g.works {
		if o.ID == id && o.state == ended { // what it says of the place is about to change
			o.stop(nil)
		}
	}
	g.sweep()
	w.state, w.since = running, time.Now()
	go g.run(w)
}

func (g *Group[I, K, D]) run(w *Work[I, K, D]) {
	err := g.Run(w.ctx, w)
	g.mu.Lock()
	defer g.mu.Unlock()
	w.state, w.err = ended, err
	if moved := errors.Is(err, ErrMoved); moved && w.ctx.Err() != nil {
		w.err = context.Cause(w.ctx) // it was stopped, and is not looked for elsewhere
	} else if moved || w.callers > 0 {
		w.stop(nil)
	}
	close(w.done)
	g.serve(w.ID)
	if w.ctx.Err() == nil {
		g.forsake(w)
	}
	g.sweep()
}

func (g *Group[I, K, D]) leave(w *Work[I, K, D]) View[I, K, D] {
	g.mu.Lock()
	defer g.mu.Unlock()
	if w.state != ended {
		if w.callers--; w.callers == 0 {
			g.forsake(w)
		}
	}
	return g.view(w)
}

// forsake has w cancelled, or what is kept of it dropped, unless a caller comes within Linger.
// mu is held.
func (g *Group[I, K, D]) forsake(w *Work[I, K, D]) {
	w.absence++
	absence := w.absence
	time.AfterFunc(g.Linger, func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		if w.callers == 0 && w.absence == absence {
			g.cancel(w, nil)
		}
	})
}

// cancel ends w before its time, or what is kept of it. mu is held.
func (g *Group[I, K, D]) cancel(w *Work[I, K, D], why error) {
	w.stop(why)
	if w.state == queued {
		w.state, w.err = ended, why
		close(w.done)
		close(w.released)
	}
	g.sweep()
}

// sweep drops the works that are over and hold nothing. mu is held.
func (g *Group[I, K, D]) sweep() {
	g.works = slices.DeleteFunc(g.works, func(w *Work[I, K, D]) bool {
		return w.state == ended && w.ctx.Err() != nil && closed(w.released)
	})
}

// underWay is the work that runs in a place. mu is held.
func (g *Group[I, K, D]) underWay(id I) *Work[I, K, D] {
	for _, w := range g.works {
		if w.ID == id && w.state == running {
			return w
		}
	}
	return nil
}

// view returns the View of w. mu is held.
func (g *Group[I, K, D]) view(w *Work[I, K, D]) View[I, K, D] {
	v := View[I, K, D]{Work: w, Since: w.since, Callers: w.callers, Shared: w.shared, Ended: w.state == ended}
	if first := g.underWay(w.ID); w.state == queued && first != nil {
		v.After = &first.Key
	}
	return v
}

// Stop cancels all work in the place that root is or was, waits until it holds nothing, and forgets
// its results. Callers who wait for it get why.
func (g *Group[I, K, D]) Stop(ctx context.Context, root string, why error) error {
	g.mu.Lock()
	works, looks := g.halt(why, func(at string) bool { return at == root })
	var none K
	l, err := g.look(ctx, root, none, func(error) {})
	if err == nil && l.err == nil {
		more, _ := g.halt(why, func(string) bool { return false }, l.id)
		works = append(works, more...)
	}
	g.mu.Unlock()
	if err != nil {
		return err
	}
	return g.wait(ctx, works, looks)
}

// Shutdown is Stop for all places, and for good.
func (g *Group[I, K, D]) Shutdown(ctx context.Context, why error) error {
	g.mu.Lock()
	g.shut = why
	works, looks := g.halt(why, func(string) bool { return true })
	g.mu.Unlock()
	return g.wait(ctx, works, looks)
}

// halt cancels what is in the places that are named so or are ids, and returns it. mu is held.
func (g *Group[I, K, D]) halt(why error, named func(root string) bool, ids ...I) (works []*Work[I, K, D], looks []*look[I, K]) {
	for _, l := range g.looks {
		if named(l.root) {
			l.stop(why)
			looks = append(looks, l)
		}
	}
	for _, w := range g.works {
		if named(w.Root) {
			ids = append(ids, w.ID)
		}
	}
	for _, w := range slices.Clone(g.works) { // of which cancel drops some
		if slices.Contains(ids, w.ID) {
			works = append(works, w)
			g.cancel(w, why)
		}
	}
	return works, looks
}

// wait waits until the works have ended and hold nothing any more, and neither do the looks.
func (g *Group[I, K, D]) wait(ctx context.Context, works []*Work[I, K, D], looks []*look[I, K]) error {
	for _, w := range works {
		if !await(ctx, w.done) {
			return ending(ctx)
		}
		if !await(ctx, w.released) {
			return g.Hung(w.Root, w.err, ending(ctx))
		}
	}
	for _, l := range looks {
		if !await(ctx, l.done) {
			return g.Hung(l.root, nil, ending(ctx))
		}
	}
	return nil
}

// ending returns the error for a caller whose ctx has ended: ctx.Err() and the cause, for errors.Is.
func ending(ctx context.Context) error {
	if cause := context.Cause(ctx); !errors.Is(cause, ctx.Err()) {
		return fmt.Errorf("%w: %w", ctx.Err(), cause)
	}
	return context.Cause(ctx)
}

// await waits until c is closed, and reports whether it is when ctx ends.
func await(ctx context.Context, c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	case <-ctx.Done():
		return closed(c)
	}
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
