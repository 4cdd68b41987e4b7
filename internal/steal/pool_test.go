// SPDX-License-Identifier: Apache-2.0

package steal_test

import (
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fastlabel/fastlabel/internal/steal"
)

// Most tests run in a synctest bubble. Its clock moves only when all goroutines
// in it are blocked, so an hour's timeout in it is no guess: it fires at once
// when nobody can make progress any more, and never before. It also fails if a
// goroutine is left behind. Stress tests run outside, on the machine's clock.
//
// Which test kills which mutant of the pool says test/mutants/pool.go.

// simple is a Begin without state, end or error.
func simple[T any](do func(*steal.Worker[T], T)) func(*steal.Worker[T]) (func(T), func(), error) {
	return func(w *steal.Worker[T]) (func(T), func(), error) {
		return func(item T) { do(w, item) }, func() {}, nil
	}
}

// crew is a job for n workers: the first, in its beginning, has the others added.
func crew[T any](n int, begin func(*steal.Worker[T]) (func(T), func(), error)) steal.Job[T] {
	return steal.Job[T]{Spares: n - 1, Begin: func(w *steal.Worker[T]) (func(T), func(), error) {
		if w.ID() == 0 {
			for range n - 1 {
				w.AddWorker()
			}
		}
		return begin(w)
	}}
}

// run is steal.Run where nothing may go wrong.
func run[T any](t *testing.T, seeds []T, workers int, do func(*steal.Worker[T], T)) {
	t.Helper()
	left, err := steal.Run(t.Context(), seeds, crew(workers, simple(do)))
	if err != nil || len(left) != 0 {
		t.Errorf("%d items left, error %v", len(left), err)
	}
}

// meeting is a place where n must be at once.
type meeting struct {
	n    int32
	here atomic.Int32
	all  chan struct{}
}

func newMeeting(n int) *meeting { return &meeting{n: int32(n), all: make(chan struct{})} }

// attend reports whether all came. Only for bubbles.
func (m *meeting) attend() bool {
	if m.here.Add(1) == m.n {
		close(m.all)
	}
	select {
	case <-m.all:
		return true
	case <-time.After(time.Hour):
		return false
	}
}

var crews = []int{1, 2, 3, 16} // how many workers

// rounds repeats what depends on the schedule; with random pauses (race builds)
// these are many schedules.
func rounds(t *testing.T, n int, f func(t *testing.T)) {
	for range n {
		synctest.Test(t, f)
		if t.Failed() {
			return
		}
	}
}

// What a worker pushes in Begin is worked on, however late it begins.
func TestBeginPushes(t *testing.T) {
	rounds(t, 20, func(t *testing.T) {
		var done atomic.Int32
		m := newMeeting(4)
		left, err := steal.Run(t.Context(), nil, crew(4, func(w *steal.Worker[int]) (func(int), func(), error) {
			if w.ID() == 3 {
				time.Sleep(time.Hour) // all others are idle by then
				for range 4 {
					w.Push(1)
				}
			}
			return simple(func(*steal.Worker[int], int) {
				if !m.attend() {
					t.Error("the others went home before the last had begun")
				}
				done.Add(1)
			})(w)
		}))
		if done.Load() != 4 || len(left) != 0 || err != nil {
			t.Errorf("%d items done, %d left, error %v", done.Load(), len(left), err)
		}
	})
}

func TestOwnerTakesNewest(t *testing.T) {
	var got []int
	run(t, []int{0, 7, 8, 9}, 1, func(w *steal.Worker[int], item int) {
		got = append(got, item)
		if item == 0 {
			w.Push(1)
			w.Push(2)
			w.PushOldest(4)
			w.Push(3)
			w.PushOldest(5)
		}
	})
	// Its own newest first, the seeds in their order.
	if want := []int{0, 3, 2, 1, 7, 8, 9, 4, 5}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
