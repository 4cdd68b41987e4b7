// SPDX-License-Identifier: Apache-2.0

// Package run is a relabel as its caller has it, and finds the calls that hang.
//
// A run has a goroutine of its own, beside which its caller waits. Nothing can end a call
// that hangs in the kernel: it is named (watch.go), and left behind if the run is to end.
// Calls without a run are bounded by Probes (probes.go).
//
// The caller's code is called in the goroutine that waits, one call at a time. A panic in
// it ends the run as its context does, with a sealed root, and then continues.
package run

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/fastlabel/fastlabel/internal/budget"
)

// Run is a run as its caller has it. Any goroutine may call its methods, but for Beside and
// Here. Its functions may be nil, but for Hung.
type Run struct {
	Stall func(calls []Call)                    // gets what the run waits for when nothing moves
	Hung  func(calls []Call, cause error) error // the error of a stopped run whose calls hang
	Ended func()                                // called when nothing is open any more
	Stop  context.CancelCauseFunc               // ends the run; set by Beside and Here
	Main  Activity                              // of the run's own goroutine
	Share atomic.Pointer[budget.Share]          // of the process's workers, once it has one

	workers atomic.Pointer[Workers] // that Main waits for
	second  atomic.Pointer[func()]  // takes back the commit, from the second reading on
	broken  atomic.Pointer[error]   // see Break
	calls   chan func()             // of the caller's code
	left    chan struct{}           // closed when Beside returns
	stalled atomic.Bool             // the run stood still at the last look
}

// Workers are those of a walk.
type Workers interface {
	Watched(yield func(Watched) bool)
	// Yield has all but one leave where working, which is how many are at work, is above 0:
	// other runs wait.
	Yield(working int)
}

// Waits says for which workers the run waits; nil: for none.
func (r *Run) Waits(w Workers) {
	r.Main.At("", "") // they say it
	if w == nil {
		r.workers.Store(nil)
	} else {
		r.workers.Store(&w)
	}
}

// watched are the run's own goroutine, and the workers for which that waits.
func (r *Run) watched(yield func(Watched) bool) {
	if w := r.workers.Load(); yield(&r.Main) && w != nil {
		(*w).Watched(yield)
	}
}

var errBroken = errors.New("the caller's code panicked")

// Break ends the run for a panic of the caller's code, which is a failure.
func (r *Run) Break(why error) {
	r.broken.CompareAndSwap(nil, &why)
	r.Stop(why)
}

// Broken returns why Break ended the run; nil if it did not.
func (r *Run) Broken() error {
	if why := r.broken.Load(); why != nil {
		return *why
	}
	return nil
}

// Second says that a second reading begins, which revoke gives up.
func (r *Run) Second(revoke func()) { r.second.Store(&revoke) }

// Call has f, which is the caller's code, called in the goroutine that called Beside, and waits for
// it. Once the run is left behind, or one of them panicked, nothing is called any more.
func (r *Run) Call(f func()) {
	done := make(chan struct{})
	call := func() {
		returned := false
		defer func() {
			if !returned {
				r.Break(errBroken) // first: the run continues, to see that it failed
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

// Beside calls what in a goroutine of its own, and waits for it until ctx ends. It calls the
// caller's code in the meantime: if that panics, the run ends before Beside does.
func (r *Run) Beside(ctx context.Context, what func(ctx context.Context) error) error {
	r.calls, r.left = make(chan func()), make(chan struct{})
	defer Repeat(Every, r.look)()
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
			_ = r.attend(ctx, done) // the panic continues
		}
	}()
	err := r.attend(ctx, done)
	returned = true
	return err
}

// Here is Beside without code of the caller's and with a context that cannot end: it calls what itself,
// for to wake another goroutine takes as long as to label a few files.
func (r *Run) Here(ctx context.Context, what func(ctx context.Context) error) error {
	ctx, r.Stop = context.WithCancelCause(ctx)
	defer r.Stop(nil)
	defer Repeat(Every, r.look)()
	return what(ctx)
}

// attend waits for the run, and calls the caller's code. If the run does not end after ctx,
// which is its own, and a call hangs, it is abandoned: it ends by itself when the call returns.
//
//	stopped ── one look ──▶ a second reading is given up ── one look ──▶ abandoned
func (r *Run) attend(ctx context.Context, done <-chan error) error {
	stop := ctx.Done()
	var tick <-chan time.Time // since it was stopped
	var late []Call           // before revoke, which makes calls in the name of the run
	for looks := 0; ; {
		select {
		case err := <-done:
			return err
		case call := <-r.calls:
			call()
		case <-stop:
			stop, tick = nil, time.Tick(Every)
		case <-tick:
			if looks++; looks == 1 {
				if revoke := r.second.Load(); revoke != nil {
					late = r.UnderWay()
					go (*revoke)() // to seal the root may hang too
				}
				continue
			}
			if calls := r.UnderWay(); len(calls) > 0 {
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
			r.Share.Load().Waits(true)
			return r.Hung(late, context.Cause(ctx))
		}
	}
}

// look replaces workers that are held up, and reports a run that stands still.
func (r *Run) look() {
	moves, hung := Look(r.watched)
	working := r.Share.Load().SetHung(hung)
	if w := r.workers.Load(); w != nil {
		(*w).Yield(working)
	}
	stalled := hung > 0 && !moves
	if was := r.stalled.Swap(stalled); stalled && !was && r.Stall != nil {
		calls := r.UnderWay()
		r.Call(func() { r.Stall(calls) })
	}
}

// Stalled lists the calls that a run which stands still waits for.
func (r *Run) Stalled() []Call {
	if !r.stalled.Load() {
		return nil
	}
	return r.UnderWay()
}

// UnderWay lists the calls that have not returned.
func (r *Run) UnderWay() []Call { return UnderWay(r.watched) }
