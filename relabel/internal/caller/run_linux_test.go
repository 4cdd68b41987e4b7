// SPDX-License-Identifier: Apache-2.0

package caller

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fastlabel/fastlabel/relabel/internal/budget"
	"github.com/fastlabel/fastlabel/relabel/internal/watch"
)

var (
	errWork    = errors.New("the work failed")
	errStop    = errors.New("it was stopped")
	errHung    = errors.New("hung")
	errPanic   = errors.New("panicked")
	errGoexit  = errors.New("goexit")
	errBreaks  = errors.New("the callback broke")
	errEntered = errors.New("no share")
)

// newRun is a run whose errors say what hangs, and what panicked.
func newRun() *Run {
	return &Run{
		Hung: func(calls []watch.Call, cause error) error { return fmt.Errorf("%w: %v: %w", errHung, calls, cause) },
		Panicked: func(callback string, value any, stack []byte) error {
			if value == nil {
				return fmt.Errorf("%w in %q", errGoexit, callback)
			}
			return fmt.Errorf("%w in %q: %v, with its stack: %t", errPanic, callback, value, len(stack) > 0)
		},
	}
}

// TestLead: the error is that of the work, or tells its panic, and comes after Ended; so it is
// with a callback, which ends the run.
func TestLead(t *testing.T) {
	for name, c := range map[string]struct {
		work func(r *Run, ctx context.Context) error
		want error
		says string
	}{
		"done":   {func(*Run, context.Context) error { return nil }, nil, "<nil>"},
		"failed": {func(*Run, context.Context) error { return errWork }, errWork, errWork.Error()},
		"panics": {func(*Run, context.Context) error { panic("x") }, errPanic, `panicked in "": x, with its stack: true`},
		"exits":  {func(*Run, context.Context) error { runtime.Goexit(); return nil }, errGoexit, `goexit in ""`},
		"stops":  {func(r *Run, ctx context.Context) error { r.Stop(errStop); <-ctx.Done(); return context.Cause(ctx) }, errStop, errStop.Error()},
		"callback panics": {func(r *Run, ctx context.Context) error {
			r.Call("Note", "", func() { panic("y") })
			<-ctx.Done()
			return context.Cause(ctx)
		}, errPanic, `panicked in "Note": y, with its stack: true`},
		"callback exits": {func(r *Run, _ context.Context) error {
			r.Serially("Skip", "", runtime.Goexit)
			return nil
		}, errGoexit, `goexit in "Skip"`},
		"throttle": {func(r *Run, ctx context.Context) error {
			ask, end := r.Throttler(ctx, func(_ context.Context, entries int) error {
				if entries == 2 {
					return errBreaks
				}
				return nil
			})
			defer end()
			if ask(1); ctx.Err() != nil {
				return errWork
			}
			ask(2)
			return context.Cause(ctx)
		}, errBreaks, errBreaks.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, ended := newRun(), false
				r.Ended = func() { ended = true }
				err := r.Lead(t.Context(), func(ctx context.Context) error { return c.work(r, ctx) })
				if !errors.Is(err, c.want) || fmt.Sprint(err) != c.says || !ended {
					t.Errorf("%v, want %s; ended: %t", err, c.says, ended)
				}
				if r.Call("Note", "", func() {}) {
					t.Error("a callback begins after the run")
				}
			})
		})
	}
}

// TestLeadHangs: a run that does not end when it is stopped is left behind within a limit,
// with the call that hangs, be it the kernel's or the caller's code. Beside a call of the
// kernel the commit is taken back before Lead returns; Ended comes when that has returned.
func TestLeadHangs(t *testing.T) {
	for name, hang := range map[string]func(r *Run, until chan struct{}) string{
		"system call": func(r *Run, until chan struct{}) string {
			task := r.Task()
			task.At("statx", "/dead")
			<-until
			return "[{statx /dead}]"
		},
		"callback": func(r *Run, until chan struct{}) string {
			if r.Call("Failure", "/dead/x", func() { <-until }) {
				t.Error("it was waited for")
			}
			return "[{the caller's Failure /dead/x}]"
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, until, revoked := newRun(), make(chan struct{}), new(atomic.Bool)
				ended := make(chan struct{})
				r.Ended = func() { close(ended) }
				ctx, stop := context.WithCancelCause(t.Context())
				time.AfterFunc(time.Hour, func() { stop(errStop) })
				begun := time.Now()
				says := make(chan string, 1)
				err := r.Lead(ctx, func(context.Context) error {
					r.Second(func() { revoked.Store(true) })
					says <- hang(r, until)
					return nil
				})
				if waited := time.Since(begun) - time.Hour; !errors.Is(err, errHung) || !errors.Is(err, errStop) || waited <= 0 || waited > watch.Limit {
					t.Errorf("%v after %v", err, waited)
				}
				if !revoked.Load() && name == "system call" { // else the run ends, and does it itself
					t.Error("the commit was not taken back")
				}
				close(until)
				<-ended
				if want := fmt.Sprintf("hung: %s: %v", <-says, errStop); err.Error() != want {
					t.Errorf("%v, want %s", err, want)
				}
			})
		})
	}
}

// TestStalled: what a run waits for is told once while nothing moves, and again after it has
// moved, but not while Stalled is under way. That holds up nothing but the end.
func TestStalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRun()
		var told []string
		returned := 0
		r.Stalled = func(calls []watch.Call) {
			told = append(told, fmt.Sprint(calls))
			time.Sleep(5 * watch.Limit)
			returned++
		}
		begun := time.Now()
		var work time.Duration
		err := r.Lead(t.Context(), func(context.Context) error {
			task := r.Task()
			for _, c := range []struct {
				path        string
				hangs, then time.Duration
			}{{"/a", 10, 2}, {"/b", 2, 1}, {"/c", 2, 0}} {
				task.At("openat", c.path)
				time.Sleep(c.hangs * watch.Limit)
				task.At("", "")
				time.Sleep(c.then * watch.Limit)
			}
			work = time.Since(begun)
			return nil
		})
		if want := []string{"[{openat /a}]", "[{openat /b}]"}; err != nil || !slices.Equal(told, want) || returned != 2 {
			t.Errorf("%q, of which %d returned, %v", told, returned, err)
		}
		if work != 17*watch.Limit {
			t.Errorf("the work took %v", work)
		}
	})
}

// TestInTurn: each waits for the one before, but not for one that hangs, beside which the
// next gets a share of its own; an error is the end, when all have returned.
func TestInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRun()
		shared := budget.New(8, func() int { return 1000 })
		enter := func() (*budget.Share, error) { return shared.Enter(t.Context(), 1) }
		var shares []*budget.Share
		var tasks []*Task
		err := r.Lead(t.Context(), func(context.Context) error {
			main := r.Task()
			first, err := enter()
			if err != nil {
				return err
			}
			main.Share.Store(first)
			order, over := make(chan int, 4), 0
			err = r.InTurn(main, 4, func(i int, task *Task) error {
				shares, tasks = append(shares, task.Share.Load()), append(tasks, task)
				task.At("statx", fmt.Sprint(i))
				if i == 1 {
					time.Sleep(time.Hour)
				}
				over++
				order <- i
				if i == 3 {
					return errWork
				}
				return nil
			}, enter)
			close(order)
			if got := fmt.Sprint(<-order, <-order, <-order, <-order); got != "0 2 3 1" || over != 4 {
				t.Errorf("the order is %s", got)
			}
			if last := main.Share.Load(); last == nil || last == first || last != shares[3] {
				t.Error("the last share did not come to main")
			}
			if tasks[0].Share.Load() != nil {
				t.Error("two tasks have one share")
			}
			if working, hung, open := shared.Taken(); working != 1 || hung != 0 || open != 1 {
				t.Errorf("the share of what hung is not given back: %d work, %d hang, %d are open", working, hung, open)
			}
			return err
		})
		if !errors.Is(err, errWork) {
			t.Error(err)
		}
		if len(shares) != 4 || shares[0] != shares[1] || shares[1] == shares[2] || shares[2] != shares[3] {
			t.Errorf("the shares are %v", shares)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		r := newRun()
		calls := 0
		err := r.Lead(t.Context(), func(context.Context) error {
			return r.InTurn(r.Task(), 3, func(_ int, task *Task) error {
				task.At("statx", "/dead")
				calls++
				time.Sleep(time.Hour)
				return nil
			}, func() (*budget.Share, error) { return nil, errEntered })
		})
		if !errors.Is(err, errEntered) || calls != 1 {
			t.Errorf("%v after %d calls", err, calls)
		}
	})
}
