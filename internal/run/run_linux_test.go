// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

var (
	errWork = errors.New("the work failed")
	errStop = errors.New("it was stopped")
	errHung = errors.New("hung")
)

// newRun is a run whose errors say what hangs.
func newRun() *Run {
	return &Run{Hung: func(calls []Call, cause error) error { return fmt.Errorf("%w: %v: %w", errHung, calls, cause) }}
}

// TestBeside: the error is that of the work, and comes after Ended. The caller's code is
// called in the caller's goroutine; its panic ends the run, and goes on.
func TestBeside(t *testing.T) {
	for name, c := range map[string]struct {
		work   func(r *Run, ctx context.Context) error
		want   error
		panics any
	}{
		"done":   {work: func(*Run, context.Context) error { return nil }},
		"failed": {work: func(*Run, context.Context) error { return errWork }, want: errWork},
		"stopped while it is in no call": {work: func(r *Run, ctx context.Context) error {
			r.Stop(errStop)
			time.Sleep(time.Hour)
			return context.Cause(ctx)
		}, want: errStop},
		"stopped in a call, after which it computes": {work: func(r *Run, ctx context.Context) error {
			r.Main.At("statx", "/slow")
			r.Stop(errStop)
			time.Sleep(Every + Every/2)
			r.Main.At("", "")
			time.Sleep(time.Hour)
			return context.Cause(ctx)
		}, want: errStop},
		"callback panics": {work: func(r *Run, ctx context.Context) error {
			r.Call(func() { panic("y") })
			<-ctx.Done()
			r.Call(func() { t.Error("a callback is called after one that panicked") })
			return context.Cause(ctx)
		}, panics: "y"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, ended := newRun(), false
				r.Ended = func() { ended = true }
				var err error
				panicked := func() (v any) {
					defer func() { v = recover() }()
					err = r.Beside(t.Context(), func(ctx context.Context) error { return c.work(r, ctx) })
					return nil
				}()
				if err != c.want || panicked != c.panics || !ended {
					t.Errorf("%v, want %v; panicked %v, want %v; ended: %t", err, c.want, panicked, c.panics, ended)
				}
				r.Call(func() { t.Error("a callback is called after the run") })
			})
		})
	}
}

// TestBreaks: the caller of code that panicked sees at once that the run has failed, and
// commits nothing.
func TestBreaks(t *testing.T) {
	for range 10000 {
		r := newRun()
		func() {
			defer func() { _ = recover() }()
			_ = r.Beside(t.Context(), func(context.Context) error {
				r.Call(func() { panic("y") })
				if r.Broken() == nil {
					t.Error("nothing failed")
				}
				return nil
			})
		}()
	}
}

// TestBesideHangs: a run that does not end when it is stopped is left behind within a limit,
// with the call that hangs. The commit is taken back before Lead returns; Ended comes when
// the call has returned.
func TestBesideHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, until, revoked := newRun(), make(chan struct{}), new(atomic.Bool)
		ended := make(chan struct{})
		r.Ended = func() { close(ended) }
		ctx, stop := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Hour, func() { stop(errStop) })
		begun := time.Now()
		err := r.Beside(ctx, func(context.Context) error {
			r.Second(func() { revoked.Store(true) })
			r.Main.At("statx", "/dead")
			<-until
			r.Call(func() { t.Error("a callback is called after Beside") })
			return nil
		})
		if waited := time.Since(begun) - time.Hour; !errors.Is(err, errHung) || !errors.Is(err, errStop) || waited <= 0 || waited > Limit {
			t.Errorf("%v after %v", err, waited)
		}
		if !revoked.Load() {
			t.Error("the commit was not taken back")
		}
		close(until)
		<-ended
		if want := fmt.Sprintf("hung: [{statx /dead}]: %v", errStop); err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	})
}

// TestHere: what runs in the caller's goroutine, and ends with its error or stop. A call that
// hangs is told of, by another goroutine, and waited for.
func TestHere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, stalls := newRun(), 0
		runtime.LockOSThread() // no other goroutine is on this thread
		defer runtime.UnlockOSThread()
		begun, thread := time.Now(), syscall.Gettid()
		err := r.Here(t.Context(), func(ctx context.Context) error {
			if syscall.Gettid() != thread {
				t.Error("it has a goroutine of its own")
			}
			r.Main.At("statx", "/dead")
			time.Sleep(time.Hour)
			stalls = len(r.Stalled())
			r.Stop(errStop)
			return context.Cause(ctx)
		})
		if !errors.Is(err, errStop) || stalls != 1 || time.Since(begun) != time.Hour {
			t.Errorf("%v after %v, %d calls hang", err, time.Since(begun), stalls)
		}
	})
}

// TestStalled: what a run waits for is told once while nothing moves, and again after it has
// moved.
func TestStalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRun()
		var told []string
		r.Stall = func(calls []Call) {
			told = append(told, fmt.Sprint(calls))
		}
		begun := time.Now()
		var work time.Duration
		err := r.Beside(t.Context(), func(context.Context) error {
			for _, c := range []struct {
				path        string
				hangs, then time.Duration
			}{{"/a", 10, 2}, {"/b", 2, 1}, {"/c", 2, 0}} {
				r.Main.At("openat", c.path)
				time.Sleep(c.hangs * Limit)
				r.Main.At("", "")
				time.Sleep(c.then * Limit)
			}
			work = time.Since(begun)
			return nil
		})
		if want := []string{"[{openat /a}]", "[{openat /b}]", "[{openat /c}]"}; err != nil || !slices.Equal(told, want) {
			t.Errorf("%q, %v", told, err)
		}
		if work != 17*Limit {
			t.Errorf("the work took %v", work)
		}
	})
}
