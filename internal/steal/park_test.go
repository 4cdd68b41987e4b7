// SPDX-License-Identifier: Apache-2.0

package steal_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fastlabel/fastlabel/internal/steal"
)

// As many items as workers run at once, though all lie in one deque.
func TestRendezvous(t *testing.T) {
	for _, n := range crews {
		rounds(t, 30, func(t *testing.T) {
			seeds, pushed := newMeeting(n), newMeeting(n)
			run(t, make([]int, n), n, func(w *steal.Worker[int], depth int) {
				if depth == 1 {
					if !pushed.attend() {
						t.Errorf("only %d of %d pushed items ran at once", pushed.here.Load(), n)
					}
					return
				}
				if !seeds.attend() {
					t.Errorf("only %d of %d seeds ran at once", seeds.here.Load(), n)
				}
				if w.ID() != 0 {
					return
				}
				for i := range n - 1 {
					if i%2 == 0 {
						w.Push(1)
					} else {
						w.PushOldest(1)
					}
				}
				if !pushed.attend() {
					t.Errorf("only %d of %d pushed items ran at once", pushed.here.Load(), n)
				}
			})
		})
	}
}

// Items pushed together are worked on together though their owner is busy: no wake is
// lost, whether a thief is asleep or on its way to bed; and who is woken twice and takes
// one item passes the second wake on.
func TestHandoff(t *testing.T) {
	for _, c := range []struct{ workers, items int }{{2, 1}, {3, 1}, {3, 2}, {5, 2}} {
		synctest.Test(t, func(t *testing.T) {
			run(t, []*meeting{nil}, c.workers, func(w *steal.Worker[*meeting], item *meeting) {
				if item != nil {
					item.attend()
					return
				}
				for i := range 1000 {
					m := newMeeting(c.items + 1)
					w.Push(m)
					if c.items == 2 {
						w.PushOldest(m)
					}
					if !m.attend() {
						t.Errorf("%+v: round %d: only %d came", c, i, m.here.Load())
						return
					}
				}
			})
		})
	}
}

// The pool stays open, with all its workers, while an item is worked on, even
// if all that it pushed so far is finished.
func TestStaysOpen(t *testing.T) {
	const workers = 4
	rounds(t, 100, func(t *testing.T) {
		m := newMeeting(workers)
		run(t, []int{0}, workers, func(w *steal.Worker[int], item int) {
			switch item {
			case 0:
				for range 3 {
					w.Push(1)
					time.Sleep(time.Hour) // until it is finished and all are idle
				}
				for range workers - 1 {
					w.Push(2)
				}
				fallthrough
			case 2:
				if !m.attend() {
					t.Errorf("only %d of %d came; the others went home", m.here.Load(), workers)
				}
			}
		})
	})
}

// Idle workers do not look around while there is nothing to see, and a push
// wakes one of them, not all.
func TestParked(t *testing.T) {
	const workers, items = 16, 50
	synctest.Test(t, func(t *testing.T) {
		var scans atomic.Int64
		_, err := steal.Run(t.Context(), []int{items}, crew(workers, func(w *steal.Worker[int]) (func(int), func(), error) {
			do := func(n int) {
				for range n {
					// Wait fails to return while anyone runs, and
					// the count below sees anyone who naps and looks.
					time.Sleep(time.Hour)
					synctest.Wait()
					w.Push(0)
				}
			}
			return do, func() { scans.Add(int64(w.Scans())) }, nil
		}))
		if err != nil {
			t.Error(err)
		}
		// A worker scans before it announces and after; who was woken scans
		// once and finds the item, then scans twice before it sleeps again.
		if got := scans.Load(); got > 2*workers+3*items+1 {
			t.Errorf("%d scans by %d workers in %d hours with one item each", got, workers, items)
		}
	})
}
