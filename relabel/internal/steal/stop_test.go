// SPDX-License-Identifier: Apache-2.0

package steal_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fastlabel/fastlabel/relabel/internal/steal"
)

var errCause = errors.New("the cause")

// counted is a Begin that counts in open who began and did not end.
func counted[T any](open *atomic.Int32, do func(*steal.Worker[T], T)) func(*steal.Worker[T]) (func(T), func(), error) {
	return func(w *steal.Worker[T]) (func(T), func(), error) {
		open.Add(1)
		return func(item T) { do(w, item) }, func() { open.Add(-1) }, nil
	}
}

func TestCancelledBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errCause)
		var open atomic.Int32
		begin := counted(&open, func(*steal.Worker[int], int) { t.Error("worked") })
		left, err := steal.Run(ctx, []int{1, 2, 3}, steal.Job[int]{Workers: 4, Begin: begin})
		if err != errCause || len(left) != 3 {
			t.Errorf("left %v, error %v", left, err)
		}
		left, err = steal.Run(ctx, nil, steal.Job[int]{Workers: 4, Begin: begin})
		if err != nil || left != nil {
			t.Errorf("nothing to do: left %v, error %v", left, err)
		}
	})
}

// A stop wakes those who sleep, and who is about to sleep. The item at hand
// returns at the stop, without having asked, so nothing is amiss.
func TestCancelParked(t *testing.T) {
	rounds(t, 100, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		var open atomic.Int32
		begin := counted(&open, func(*steal.Worker[int], int) {
			time.Sleep(time.Hour)
			cancel(errCause)
			time.Sleep(time.Hour) // all others must be gone by then
		})
		in := func(w *steal.Worker[int]) (func(int), func(), error) {
			do, end, err := begin(w)
			return func(item int) {
				do(item)
				if n := open.Load(); n != 1 {
					t.Errorf("an hour after the stop %d workers are left", n)
				}
			}, end, err
		}
		left, err := steal.Run(ctx, []int{0}, steal.Job[int]{Workers: 5, Begin: in})
		if err != nil || left != nil || open.Load() != 0 {
			t.Errorf("left %v, error %v, %d not ended", left, err, open.Load())
		}
	})
}

// A cancel during the last item leaves nothing undone, hence is no error; and
// Run does not leave the hook on the context behind.
func TestCancelLast(t *testing.T) {
	rounds(t, 100, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		left, err := steal.Run(ctx, []int{0}, steal.Job[int]{Workers: 2, Begin: simple(func(*steal.Worker[int], int) {
			time.Sleep(time.Hour)
			cancel(errCause)
		})})
		if err != nil || left != nil {
			t.Errorf("left %v, error %v", left, err)
		}
	})
}

// Who was told to stop may have left something undone: that is no success.
func TestStoppedIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		left, err := steal.Run(ctx, []int{0}, steal.Job[int]{Workers: 2, Begin: simple(func(w *steal.Worker[int], _ int) {
			if w.Stopped() {
				t.Error("stopped too early")
			}
			cancel(errCause)
			synctest.Wait()
			if !w.Stopped() {
				t.Error("not stopped")
			}
		})})
		if err != errCause || left != nil {
			t.Errorf("left %v, error %v", left, err)
		}
	})
}

// After a stop each item was worked on or is returned, and no second one is
// begun by anybody.
func TestCancelBusy(t *testing.T) {
	for _, workers := range crews {
		for _, at := range []int64{0, 1, 50, 1000} {
			ctx, cancel := context.WithCancelCause(t.Context())
			tr, items := newTree(2500, 1)
			var open atomic.Int32
			begin := counted(&open, func(w *steal.Worker[int64], item int64) {
				if item == at {
					cancel(errCause)
					for !w.Stopped() {
						runtime.Gosched()
					}
				}
				tr.do(w, item)
			})
			left, err := steal.Run(ctx, items, steal.Job[int64]{Workers: workers, Begin: begin})
			all := tr.next.Load() >= tr.size-margin // the others were faster than the cancel
			if err != errCause || len(left) == 0 && !all || open.Load() != 0 {
				t.Errorf("workers=%d at=%d: %d left, error %v, %d not ended", workers, at, len(left), err, open.Load())
			}
			tr.check(t, left)
		}
	}
}

// Once it is stopped, a pool begins nothing.
func TestStopsAtOnce(t *testing.T) {
	rounds(t, 50, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		var late atomic.Int32
		left, err := steal.Run(ctx, []int{0}, steal.Job[int]{Workers: 3, Begin: simple(func(w *steal.Worker[int], item int) {
			if item != 0 {
				late.Add(1)
				return
			}
			time.Sleep(time.Hour)
			cancel(errCause)
			time.Sleep(time.Hour)
			for i := range 10 {
				w.Push(i + 1)
			}
		})})
		slices.Sort(left)
		if want := []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}; err != errCause || late.Load() != 0 || !slices.Equal(left, want) {
			t.Errorf("left %v, error %v, %d begun", left, err, late.Load())
		}
	})
}

// Run leaves stuck workers behind after Grace; they do no harm when they come
// back.
func TestStuck(t *testing.T) {
	rounds(t, 20, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		release := make(chan struct{})
		stuck := make([]bool, 4)
		var open atomic.Int32
		begin := counted(&open, func(w *steal.Worker[int], item int) {
			time.Sleep(time.Hour) // so that each of the four has one
			if item > 2 {
				w.Push(item + 10)
				time.Sleep(time.Hour)
				return
			}
			stuck[w.ID()] = true
			w.Push(item + 20)
			<-release
			for range 100 {
				w.Push(0)
				w.Give(0)
			}
		})
		time.AfterFunc(90*time.Minute, func() { cancel(errCause) })
		start := time.Now()
		left, err := steal.Run(ctx, []int{1, 2, 3, 4}, steal.Job[int]{Workers: 4, Begin: begin, Grace: 2 * time.Hour})
		if took := time.Since(start).Round(time.Minute); took != 210*time.Minute {
			t.Errorf("Run took %v", took)
		}
		var s *steal.Stuck
		if !errors.As(err, &s) || !errors.Is(err, errCause) {
			t.Fatalf("error %v", err)
		}
		var want []int
		for id, is := range stuck {
			if is {
				want = append(want, id)
			}
		}
		if len(want) != 2 || !slices.Equal(s.Workers, want) {
			t.Errorf("stuck: %v, want %v", s.Workers, want)
		}
		slices.Sort(left)
		if !slices.Equal(left, []int{13, 14, 21, 22}) {
			t.Errorf("left %v", left)
		}
		if open.Load() != 2 {
			t.Errorf("%d not ended, want the two stuck", open.Load())
		}
		close(release)
		synctest.Wait()
		time.Sleep(time.Hour)
		if open.Load() != 0 {
			t.Errorf("%d not ended after they came back", open.Load())
		}
	})
}

// Who comes back within Grace is not stuck.
func TestGraceSuffices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		var open atomic.Int32
		begin := counted(&open, func(w *steal.Worker[int], item int) {
			w.Push(item + 1)
			cancel(errCause)
			time.Sleep(time.Hour)
		})
		left, err := steal.Run(ctx, []int{1}, steal.Job[int]{Workers: 2, Begin: begin, Grace: 3 * time.Hour})
		if err != errCause || len(left) != 1 {
			t.Errorf("left %v, error %v", left, err)
		}
	})
}
