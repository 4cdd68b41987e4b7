// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/fastlabel/fastlabel/relabel/internal/budget"
	"github.com/fastlabel/fastlabel/relabel/internal/walk"
	"github.com/fastlabel/fastlabel/relabel/internal/watch"
)

// task is what one goroutine of the run does outside the pool: the run itself or,
// while that waits, what is mounted beneath the root.
type task struct {
	*watch.Activity
	walk  atomic.Pointer[walk.Walk]    // that is under way, if there is one
	share atomic.Pointer[budget.Share] // of the process's workers, if it has one
}

// task adds a task to the run.
func (r *run) task() *task {
	t := &task{Activity: watch.New()}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tasks = append(r.tasks, t)
	return t
}

// attend waits for the run, which is in a goroutine of its own, and has workers that
// are held up replaced. If the run does not end after ctx, which is its own, it is
// abandoned: it ends by itself when the call returns.
//
//	stopped ── one look ──▶ the caller's code is waited for no longer,
//	                        and a second reading is given up ── one look ──▶ abandoned
func (r *run) attend(ctx context.Context, done <-chan error) error {
	tick := time.NewTicker(watch.Every)
	defer tick.Stop()
	stop, looks := ctx.Done(), 0 // since it was stopped
	var revoked <-chan struct{}
	var late []HungCall // before revoke, which makes calls in the name of the run
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
					for _, t := range r.everyTask() {
						t.share.Load().Waits(true)
					}
					if calls := r.underWay(); len(calls) > 0 {
						late = calls
					}
					return &HungError{Calls: late, Cause: context.Cause(ctx)}
				}
			}
		}
		if done != nil || r.telling && !r.isOff() {
			continue
		}
		if calls := r.underWayHere(); len(calls) > 0 {
			return &HungError{Calls: calls, Cause: context.Cause(ctx)}
		}
		return err
	}
}

// revoke gives up a second reading. It waits for nothing: to seal the root may hang too.
func (r *run) revoke() <-chan struct{} {
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
func (r *run) watchOnce() {
	still, waiting := true, false
	for _, t := range r.everyTask() {
		k := t.walk.Load()
		moves, hung := t.Look(k.Watched)
		still, waiting = still && !moves, waiting || hung > 0
		k.Yield(t.share.Load().Held(hung))
	}
	if stalled := still && waiting; stalled != r.stalled {
		if r.stalled = stalled; stalled && r.trace.Stall != nil {
			r.tellStall(r.underWay())
		}
	}
}

// tellStall waits for nothing: Trace.Stall may block, or another callback that comes first.
func (r *run) tellStall(calls []HungCall) {
	if r.telling {
		return
	}
	r.telling = true
	go func() {
		r.serially("Trace.Stall", "", func() { r.trace.Stall(calls) })
		r.stallTold <- struct{}{}
	}()
}

func (r *run) everyTask() []*task {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.tasks
}

// underWay lists the calls that have not returned.
func (r *run) underWay() []HungCall {
	calls := r.underWayHere()
	for _, t := range r.everyTask() {
		for _, c := range t.UnderWay(t.walk.Load().Watched) {
			calls = append(calls, HungCall(c))
		}
	}
	return calls
}
