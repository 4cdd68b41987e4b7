// SPDX-License-Identifier: Apache-2.0

package caller

import (
	"context"
	"errors"
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
	// Hung is the error where calls have not returned that a stopped run waits for;
	// Panicked where the caller's code panicked, with nil where it ended its goroutine.
	Hung     func(calls []watch.Call, cause error) error
	Panicked func(callback string, value any, stack []byte) error
	Stalled  func(calls []watch.Call) // is told what a run waits for that does not move; may be nil
	Ended    func()                   // is told when nothing is open any more; may be nil

	stop   context.CancelCauseFunc
	second atomic.Pointer[func()] // takes back the commit, from the second reading on
	serial sync.Mutex             // of the calls that come one at a time

	mu      sync.Mutex
	tasks   []*Task
	over    bool          // the caller does not wait any more; beside a call that hangs the run continues
	calling []*watch.Call // the caller's code that is under way
	blown   error         // the first panic in it
	off     chan struct{} // closed when it is waited for no longer: see Call

	// The rest belongs to attend.
	stalled   bool          // the run stood still at the last look
	stallTold chan struct{} // Stalled has returned
	telling   bool          // Stalled is under way
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

// Lead calls what in a goroutine of its own, and waits for it until ctx ends.
func (r *Run) Lead(ctx context.Context, what func(ctx context.Context) error) error {
	r.off, r.stallTold = make(chan struct{}), make(chan struct{}, 1)
	ctx, r.stop = context.WithCancelCause(ctx)
	done := make(chan error, 1)
	go func() {
		var err error
		returned := false
		defer func() {
			if !returned {
				err = r.blow("", recover())
			}
			if r.Ended != nil {
				r.Ended()
			}
			done <- err
		}()
		err = what(ctx)
		returned = true
	}()
	err := r.attend(ctx, done)
	r.mu.Lock()
	r.over = true
	blown := r.blown
	r.mu.Unlock()
	r.stop(nil)
	if blown != nil && !errors.Is(err, blown) {
		err = blown
	}
	return err
}

// attend waits for the run, which is in a goroutine of its own, and has workers that
// are held up replaced. If the run does not end after ctx, which is its own, it is
// abandoned: it ends by itself when the call returns.
//
//	stopped ── one look ──▶ the caller's code is waited for no longer,
//	                        and a second reading is given up ── one look ──▶ abandoned
func (r *Run) attend(ctx context.Context, done <-chan error) error {
	tick := time.NewTicker(watch.Every)
	defer tick.Stop()
	stop, looks := ctx.Done(), 0 // since it was stopped
	var revoked <-chan struct{}
	var late []watch.Call // before revoke, which makes calls in the name of the run
	var err error
	for {
		select {
		case err = <-done:
			done = nil
		case <-r.stallTold:
			r.telling = false
		case <-stop:
			stop = nil
			tick.Reset(watch.Every)
		case <-revoked: // before Tree returns, for its caller goes by the root's label
			revoked = nil
		case <-tick.C:
			if done != nil {
				r.watchOnce()
			}
			if stop == nil {
				looks++
			}
			switch looks {
			case 1:
				r.callOff()
				late = r.underWay()
				revoked = r.revoke()
			case 2:
				select {
				case err = <-done:
					done = nil
				default:
					for _, t := range r.Tasks() {
						t.Share.Load().Waits(true)
					}
					if calls := r.underWay(); len(calls) > 0 {
						late = calls
					}
					return r.Hung(late, context.Cause(ctx))
				}
			}
		}
		if done != nil || r.telling && !r.isOff() {
			continue
		}
		if calls := r.underWayHere(); len(calls) > 0 {
			return r.Hung(calls, context.Cause(ctx))
		}
		return err
	}
}

// revoke gives up a second reading. It waits for nothing: to seal the root may hang too.
func (r *Run) revoke() <-chan struct{} {
	revoke := r.second.Load()
	if revoke == nil {
		return nil
	}
	revoked := make(chan struct{})
	go func() {
		(*revoke)()
		close(revoked)
	}()
	return revoked
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
			r.tellStall(r.underWay())
		}
	}
}

// tellStall waits for nothing: Stalled may block, or another callback that comes first.
func (r *Run) tellStall(calls []watch.Call) {
	if r.telling {
		return
	}
	r.telling = true
	go func() {
		r.Serially("Trace.Stall", "", func() { r.Stalled(calls) })
		r.stallTold <- struct{}{}
	}()
}

// underWay lists the calls that have not returned.
func (r *Run) underWay() []watch.Call {
	calls := r.underWayHere()
	for _, t := range r.Tasks() {
		calls = append(calls, t.UnderWay(t.Walk.Load().Watched)...)
	}
	return calls
}
