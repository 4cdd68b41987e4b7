// SPDX-License-Identifier: Apache-2.0

package steal_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fastlabel/fastlabel/internal/steal"
)

var errCause = errors.New("the cause")

// counted is a Begin that counts in open who began and did not end.
func counted[T any](open *atomic.Int32, do func(*steal.Worker[T], T)) func(*steal.Worker[T]) (func(T), func(), error) {
	return func(w *steal.Worker[T]) (func(T), func(), error) {
		open.Add(1)
		return func(item T) { do(w, item) }, func() { open.Add(-1) }, nil
	}
}

// A stop wakes those who sleep, and who is about to sleep. The item at hand
// returns at the stop, without having asked, so nothing is amiss.
func TestCancelParked(t *testing.T) {
	rounds(t, 100, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		var open atomic.Int32
		left, err := steal.Run(ctx, []int{0}, crew(5, counted(&open, func(*steal.Worker[int], int) {
			time.Sleep(time.Hour)
			cancel(errCause)
			time.Sleep(time.Hour)
			if n := open.Load(); n != 1 {
				t.Errorf("an hour after the stop %d workers are left", n)
			}
		})))
		if err != nil || left != nil || open.Load() != 0 {
			t.Errorf("left %v, error %v, %d not ended", left, err, open.Load())
		}
	})
}

// tree is work that breeds: items are numbers, each once, below size.
type tree struct {
	size int64
	next atomic.Int64
	done []atomic.Int32 // by item
}

// margin is room for workers that looked at the size together.
const margin = 100

// newTree has the item 0 to begin with.
func newTree(size int64) *tree {
	tr := &tree{size: size, done: make([]atomic.Int32, size)}
	tr.next.Store(1)
	return tr
}

// do marks the item and adds a few more, at random ends.
func (tr *tree) do(w *steal.Worker[int64], item int64) {
	tr.done[item].Add(1)
	for range rand.IntN(4) {
		tr.add(w)
	}
	if rand.IntN(50) == 0 {
		for range 100 {
			tr.add(w)
		}
	}
	// Lest the tree die out: below the number of items in the tree one
	// child at least.
	tr.add(w)
}

func (tr *tree) add(w *steal.Worker[int64]) {
	if tr.next.Load() >= tr.size-margin {
		return
	}
	item := tr.next.Add(1) - 1
	if rand.IntN(2) == 0 {
		w.Push(item)
	} else {
		w.PushOldest(item)
	}
}

// check says what is neither done once nor left once.
func (tr *tree) check(t *testing.T, left []int64) {
	t.Helper()
	count := make([]int32, tr.size)
	for i := range tr.done {
		count[i] = tr.done[i].Load()
	}
	for _, item := range left {
		count[item]++
	}
	for i := range tr.next.Load() {
		if count[i] != 1 {
			t.Fatalf("item %d of %d: done %d times, with %d left in all", i, tr.next.Load(), tr.done[i].Load(), len(left))
		}
	}
}

// After a stop each item was worked on or is returned, and no second one is
// begun by anybody.
func TestCancelBusy(t *testing.T) {
	for _, workers := range crews {
		for _, at := range []int64{0, 1, 50, 1000} {
			ctx, cancel := context.WithCancelCause(t.Context())
			tr := newTree(2500)
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
			left, err := steal.Run(ctx, []int64{0}, crew(workers, begin))
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
		left, err := steal.Run(ctx, []int{0}, crew(3, simple(func(w *steal.Worker[int], item int) {
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
		})))
		slices.Sort(left)
		if want := []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}; err != errCause || late.Load() != 0 || !slices.Equal(left, want) {
			t.Errorf("left %v, error %v, %d begun", left, err, late.Load())
		}
	})
}

// Run waits for workers that are held up, also for those who were added, however long,
// and returns what they pushed.
func TestHeldUp(t *testing.T) {
	rounds(t, 20, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		release := make(chan struct{})
		var open atomic.Int32
		begin := counted(&open, func(w *steal.Worker[int], item int) {
			time.Sleep(time.Hour) // so that each of the four has one
			w.Push(item + 10)
			if item > 2 {
				time.Sleep(time.Hour)
				return
			}
			<-release
			w.Push(item + 20)
			w.PushOldest(item + 30)
		})
		time.AfterFunc(90*time.Minute, func() { cancel(errCause) })
		time.AfterFunc(24*time.Hour, func() {
			if open.Load() != 2 {
				t.Errorf("%d not ended, want the two that are held up", open.Load())
			}
			close(release)
		})
		start := time.Now()
		left, err := steal.Run(ctx, []int{1, 2, 3, 4}, crew(4, begin))
		if took := time.Since(start).Round(time.Minute); took != 24*time.Hour || err != errCause || open.Load() != 0 {
			t.Errorf("Run took %v, error %v, %d not ended", took, err, open.Load())
		}
		slices.Sort(left)
		if !slices.Equal(left, []int{11, 12, 13, 14, 21, 22, 31, 32}) {
			t.Errorf("left %v", left)
		}
	})
}
