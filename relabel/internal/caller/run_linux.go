// SPDX-License-Identifier: Apache-2.0

// Package caller is what stands between a run and its caller.
//
// A run has a goroutine of its own, beside which its caller waits: a call of the
// filesystem that hangs is named, and left behind if the run is to end (run_linux.go).
//
// The caller's code is called in the goroutine that waits, one call at a time. A panic in
// it ends the run as its context does, with a sealed root, and then goes on.
//
// What the run has counted is in account_linux.go.
package caller

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fastlabel/fastlabel/relabel/internal/budget"
	"github.com/fastlabel/fastlabel/relabel/internal/walk"
	"github.com/fastlabel/fastlabel/relabel/internal/watch"
)

// Run is a run as its caller has it. All methods but Lead and Here may be called from any
// goroutine.
type Run struct {
	// Stall is told what the run waits for, when nothing moves; may be nil.
	Stall func(calls []watch.Call)
	// Hung is the error where calls have not returned that a stopped run waits for.
	Hung  func(calls []watch.Call, cause error) error
	Ended func()                  // is told when nothing is open any more; may be nil
	Stop  context.CancelCauseFunc // ends the run; set by Lead and Here

	second atomic.Pointer[func()] // takes back the commit, from the second reading on
	broken atomic.Pointer[error]  // see Break
	calls  chan func()            // of the caller's code; nil in Here
	turn   sync.Mutex             // one call of it at a time, in Here; guards thrown
	thrown any                    // what it panicked with, in Here
	left   chan struct{}          // closed when Lead returns

	stalled atomic.Bool // the run stood still at the last look

	mu    sync.Mutex // guards the rest, for workers, tasks and a caller who left them behind
	tasks []*Task
	total walk.Tally // but for walks that are under way
}

// Task is what one goroutine of the run does outside the pool: the run itself or,
// while that waits, what is mounted beneath the root.
type Task struct {
	watch.Activity
	Walk  atomic.Pointer[walk.Walk]    // that is under way, if there is one
	Share atomic.Pointer[budget.Share] // of the process's workers, if it has one

	stalls chan struct{} // gets a token when nothing of the task has moved for the limit
	ended  chan error    // gets the task's error; both are made by InTurn
}

// watched are the task's own goroutine, and the workers for which that waits.
func (t *Task) watched(yield func(watch.Watched) bool) {
	if yield(t.Own()) {
		t.Walk.Load().Watched(yield)
	}
}

// Task adds a task to the run.
func (r *Run) Task() *Task { return r.add(new(Task)) }

func (r *Run) add(t *Task) *Task {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tasks = append(r.tasks, t)
	return t
}

// all are the tasks so far.
func (r *Run) all() []*Task {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.tasks
}

// errBroken is why a run ends whose caller's code panicked.
var errBroken = errors.New("the caller's code panicked")

// Break ends the run for a panic of the caller's code, which is a failure.
func (r *Run) Break(why error) {
	r.broken.CompareAndSwap(nil, &why)
	r.Stop(why)
}

// Broken is why Break ended the run; nil if it did not.
func (r *Run) Broken() error {
	if why := r.broken.Load(); why != nil {
		return *why
	}
	return nil
}

// Second says that a second reading begins, which revoke gives up.
func (r *Run) Second(revoke func()) { r.second.Store(&revoke) }

// Call has f, which is the caller's code, called in the goroutine that called Lead, and
// waits for it. So calls come one at a time, and a panic goes on in the caller. Once the
// run is left behind, or one of them panicked, nothing is called any more. In Here it is a
// goroutine of its own that calls f: the thread of a worker may be in the volume.
func (r *Run) Call(f func()) {
	if r.calls == nil {
		r.turn.Lock()
		defer r.turn.Unlock()
		if r.Broken() != nil {
			return
		}
		thrown := make(chan any)
		go func() {
			defer func() { thrown <- recover() }()
			f()
		}()
		if r.thrown = <-thrown; r.thrown != nil {
			r.Break(errBroken)
		}
		return
	}
	done := make(chan struct{})
	call := func() {
		returned := false
		defer func() {
			if !returned {
				r.Break(errBroken) // first: the run goes on to see that it failed
			}
			close(done)
		}()
		if r.Broken() == nil {
			f()
		}
		returned = true
	}
	select {
	case r.calls <- call:
		<-done
	case <-r.left:
	}
}

// Lead calls what in a goroutine of its own, and waits for it until ctx ends. It calls the
// caller's code in the meantime: if that panics, the run ends before Lead does.
func (r *Run) Lead(ctx context.Context, what func(ctx context.Context) error) error {
	r.calls, r.left = make(chan func()), make(chan struct{})
	defer watch.Repeat(watch.Every, r.look)()
	defer close(r.left) // before the end of the looks, one of which may wait in Call
	ctx, r.Stop = context.WithCancelCause(ctx)
	defer r.Stop(nil)
	done := make(chan error, 1)
	go func() {
		err := what(ctx)
		if r.Ended != nil {
			r.Ended()
		}
		done <- err
	}()
	returned := false
	defer func() {
		if !returned {
			_ = r.attend(ctx, done) // the panic goes on
		}
	}()
	err := r.attend(ctx, done)
	returned = true
	return err
}

// Here is Lead for a context that cannot end, and for code of the caller's that any goroutine
// may call: it calls what itself, for to wake another goroutine takes as long as to label a few
// files. A run that hangs is waited for.
func (r *Run) Here(ctx context.Context, what func(ctx context.Context) error) error {
	ctx, r.Stop = context.WithCancelCause(ctx)
	defer r.Stop(nil)
	err := func() error {
		defer watch.Repeat(watch.Every, r.look)()
		return what(ctx)
	}()
	if r.thrown != nil {
		panic(r.thrown)
	}
	return err
}

// attend waits for the run, and calls the caller's code. If the run does not end after ctx,
// which is its own, and a call hangs, it is abandoned: it ends by itself when the call returns.
//
//	stopped ── one look ──▶ a second reading is given up ── one look ──▶ abandoned
func (r *Run) attend(ctx context.Context, done <-chan error) error {
	stop := ctx.Done()
	var tick <-chan time.Time // since it was stopped
	var late []watch.Call     // before revoke, which makes calls in the name of the run
	for looks := 0; ; {
		select {
		case err := <-done:
			return err
		case call := <-r.calls:
			call()
		case <-stop:
			stop, tick = nil, time.Tick(watch.Every)
		case <-tick:
			if looks++; looks == 1 {
				late = r.underWay()
				if revoke := r.second.Load(); revoke != nil {
					go (*revoke)() // to seal the root may hang too
				}
				continue
			}
			if calls := r.underWay(); len(calls) > 0 {
				late = calls
			}
			if len(late) == 0 {
				continue // it computes, and ends by itself
			}
			select {
			case err := <-done:
				return err
			default:
			}
			for _, t := range r.all() {
				t.Share.Load().Waits(true)
			}
			return r.Hung(late, context.Cause(ctx))
		}
	}
}

// look relieves workers, and tells of a run that stands still.
func (r *Run) look() {
	still, waiting := true, false
	for _, t := range r.all() {
		k := t.Walk.Load()
		moves, hung := watch.Look(t.watched)
		still, waiting = still && !moves, waiting || hung > 0
		if hung > 0 && !moves {
			select {
			case t.stalls <- struct{}{}:
			default:
			}
		}
		k.Yield(t.Share.Load().Held(hung))
	}
	stalled := still && waiting
	if was := r.stalled.Swap(stalled); stalled && !was && r.Stall != nil {
		calls := r.underWay()
		r.Call(func() { r.Stall(calls) })
	}
}

// Stalled lists the calls that a run which stands still waits for.
func (r *Run) Stalled() []watch.Call {
	if !r.stalled.Load() {
		return nil
	}
	return r.underWay()
}

// underWay lists the calls that have not returned.
func (r *Run) underWay() (calls []watch.Call) {
	for _, t := range r.all() {
		calls = append(calls, watch.UnderWay(t.watched)...)
	}
	return calls
}

// InTurn calls do so many times, one call after the other, each with a task of its own that
// has main's share. A call that hangs keeps the share, and the next one gets another one
// of b. An error is the end: InTurn returns the first one when all calls have returned.
func (r *Run) InTurn(ctx context.Context, main *Task, times int, do func(i int, t *Task) error, b *budget.Budget) error {
	var left []*Task // whose call hangs
	var first error
	share := main.Share.Load()
	main.Share.Store(nil)
	defer func() { main.Share.Store(share) }()
	for i := 0; i < times && first == nil; i++ {
		t := r.add(&Task{stalls: make(chan struct{}, 1), ended: make(chan error, 1)})
		t.Share.Store(share)
		go func() {
			t.ended <- do(i, t)
			t.At("", "")
		}()
		select {
		case first = <-t.ended:
			t.Share.Store(nil)
		case <-t.stalls:
			left = append(left, t)
			share, first = b.Enter(ctx)
		}
	}
	share.Waits(len(left) > 0)
	for _, t := range left {
		first = cmp.Or(first, <-t.ended)
		t.Share.Load().Close()
	}
	share.Waits(false)
	return first
}
