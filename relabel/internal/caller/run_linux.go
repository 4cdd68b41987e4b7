// SPDX-License-Identifier: Apache-2.0

package caller

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fastlabel/fastlabel/relabel/internal/budget"
	"github.com/fastlabel/fastlabel/relabel/internal/walk"
	"github.com/fastlabel/fastlabel/relabel/internal/watch"
)

// Run is a run as its caller has it. All methods but Lead may be called from any
// goroutine.
type Run struct {
	// Hung is the error where calls have not returned that a stopped run waits for.
	Hung    func(calls []watch.Call, cause error) error
	Stalled func(calls []watch.Call) // is told what a run waits for that does not move; may be nil
	Ended   func()                   // is told when nothing is open any more; may be nil

	stop   context.CancelCauseFunc
	second atomic.Pointer[func()] // takes back the commit, from the second reading on
	broken atomic.Pointer[error]  // see Break
	calls  chan call              // of the caller's code
	left   chan struct{}          // closed when Lead returns

	mu    sync.Mutex
	tasks []*Task

	stalled bool // the run stood still at the last look; it belongs to attend
}

// Task is what one goroutine of the run does outside the pool: the run itself or,
// while that waits, what is mounted beneath the root.
type Task struct {
	*watch.Activity
	Walk  atomic.Pointer[walk.Walk]    // that is under way, if there is one
	Share atomic.Pointer[budget.Share] // of the process's workers, if it has one
}

// Task adds a task to the run.
func (r *Run) Task() *Task {
	t := &Task{Activity: watch.New()}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tasks = append(r.tasks, t)
	return t
}

// Tasks are all so far.
func (r *Run) Tasks() []*Task {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.tasks
}

// Stop ends the run.
func (r *Run) Stop(why error) {
	if r.stop != nil {
		r.stop(why)
	}
}

// Second says that a second reading begins, which revoke gives up.
func (r *Run) Second(revoke func()) { r.second.Store(&revoke) }

// Lead calls what in a goroutine of its own, and waits for it until ctx ends. It calls the
// caller's code in the meantime: if that panics, the run ends before Lead does.
func (r *Run) Lead(ctx context.Context, what func(ctx context.Context) error) error {
	r.calls, r.left = make(chan call), make(chan struct{})
	defer close(r.left)
	ctx, r.stop = context.WithCancelCause(ctx)
	defer r.stop(nil)
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
			r.Break(errBroken)
			_ = r.attend(ctx, done) // the panic goes on
		}
	}()
	err := r.attend(ctx, done)
	returned = true
	return err
}

// attend waits for the run, has workers that are held up replaced, and calls the caller's
// code. If the run does not end after ctx, which is its own, and a call hangs, it is
// abandoned: it ends by itself when the call returns.
//
//	stopped ── one look ──▶ a second reading is given up ── one look ──▶ abandoned
func (r *Run) attend(ctx context.Context, done <-chan error) error {
	tick := time.NewTicker(watch.Every)
	defer tick.Stop()
	stop, looks := ctx.Done(), 0 // since it was stopped
	var late []watch.Call        // before revoke, which makes calls in the name of the run
	for {
		select {
		case err := <-done:
			return err
		case c := <-r.calls:
			r.make(c)
		case <-stop:
			stop = nil
			tick.Reset(watch.Every)
		case <-tick.C:
			r.watchOnce()
			if stop != nil {
				continue
			}
			if looks++; looks == 1 {
				late = r.underWay()
				r.revoke()
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
			for _, t := range r.Tasks() {
				t.Share.Load().Waits(true)
			}
			return r.Hung(late, context.Cause(ctx))
		}
	}
}

// revoke gives up a second reading. It waits for nothing: to seal the root may hang too.
func (r *Run) revoke() {
	if revoke := r.second.Load(); revoke != nil {
		go (*revoke)()
	}
}

// watchOnce relieves workers, and tells of a run that stands still.
func (r *Run) watchOnce() {
	still, waiting := true, false
	for _, t := range r.Tasks() {
		k := t.Walk.Load()
		moves, hung := t.Look(k.Watched)
		still, waiting = still && !moves, waiting || hung > 0
		k.Yield(t.Share.Load().Held(hung))
	}
	if stalled := still && waiting; stalled != r.stalled {
		if r.stalled = stalled; stalled && r.Stalled != nil {
			r.Stalled(r.underWay())
		}
	}
}

// underWay lists the calls that have not returned.
func (r *Run) underWay() (calls []watch.Call) {
	for _, t := range r.Tasks() {
		calls = append(calls, t.UnderWay(t.Walk.Load().Watched)...)
	}
	return calls
}
