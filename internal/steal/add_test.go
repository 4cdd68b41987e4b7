// SPDX-License-Identifier: Apache-2.0

package steal_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fastlabel/fastlabel/internal/steal"
)

// One worker is held up for an hour. who is added does the rest at once, and
// what it pushes in its beginning; the pool ends with the one that was held up.
func TestAddWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var open atomic.Int32
		var mu sync.Mutex // of began and done
		var began []int
		done := map[int]time.Duration{}
		start := time.Now()
		begin := func(w *steal.Worker[int]) (func(int), func(), error) {
			mu.Lock()
			began = append(began, w.ID())
			mu.Unlock()
			if w.ID() == 1 {
				w.Push(7)
			}
			do, end, err := counted(&open, func(w *steal.Worker[int], item int) {
				if item == 0 {
					w.Push(5)
					if !w.AddWorker() {
						t.Error("refused")
					}
					if w.AddWorker() {
						t.Error("more than the spares")
					}
					time.Sleep(time.Hour)
					w.Push(8) // for the other, who must still be there
					time.Sleep(time.Hour)
				}
				mu.Lock()
				done[item] = time.Since(start)
				mu.Unlock()
			})(w)
			return do, end, err
		}
		left, err := steal.Run(t.Context(), []int{0, 1, 2}, steal.Job[int]{Spares: 1, Begin: begin})
		if err != nil || left != nil || open.Load() != 0 || len(began) != 2 {
			t.Errorf("left %v, error %v, open %d, began %v", left, err, open.Load(), began)
		}
		for item, after := range done {
			if min(after/time.Hour, 2) != map[int]time.Duration{0: 2, 8: 1}[item] {
				t.Errorf("%d was done after %v", item, after)
			}
		}
		if len(done) != 6 {
			t.Errorf("done: %v", done)
		}
	})
}

// When nothing is pending any more, or the pool is stopped, nobody is added: Run
// may have returned.
func TestAddWorkerLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var last *steal.Worker[int]
		begin := func(w *steal.Worker[int]) (func(int), func(), error) {
			last = w
			return func(int) {}, func() {}, nil
		}
		if _, err := steal.Run(t.Context(), []int{1}, steal.Job[int]{Spares: 1, Begin: begin}); err != nil {
			t.Error(err)
		}
		if last.AddWorker() {
			t.Error("added to a pool that has ended")
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		_, err := steal.Run(ctx, []int{1, 2}, steal.Job[int]{Spares: 1, Begin: func(w *steal.Worker[int]) (func(int), func(), error) {
			return func(int) {
				cancel(errCause)
				time.Sleep(time.Second)
				if w.AddWorker() {
					t.Error("added to a pool that was stopped")
				}
			}, func() {}, nil
		}})
		if err != errCause {
			t.Error(err)
		}
	})
}
