// SPDX-License-Identifier: Apache-2.0

package steal_test

import (
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fastlabel/fastlabel/internal/steal"
)

// Those who are too many leave, what they had before them is done by who stays,
// and one always stays.
func TestDismiss(t *testing.T) {
	rounds(t, 20, func(t *testing.T) {
		var open, done, most, at atomic.Int32
		first := true
		left, err := steal.Run(t.Context(), []int{0}, crew(4, counted(&open, func(w *steal.Worker[int], item int) {
			done.Add(1)
			if item > 0 {
				if now := at.Add(1); now > most.Load() {
					most.Store(now)
				}
				time.Sleep(time.Second)
				at.Add(-1)
				return
			}
			if first {
				first = false
				for open.Load() < 4 { // all have begun
					time.Sleep(time.Millisecond)
				}
				if n := w.Dismiss(1); n != 1 {
					t.Errorf("%d were to leave, not 1", n)
				}
				if n := w.Dismiss(10); n != 2 {
					t.Errorf("%d of the three that stay were to leave, not 2", n)
				}
				if n := w.Dismiss(1); n != 0 {
					t.Errorf("the last is to leave: %d", n)
				}
			}
			for range 20 {
				w.Push(1)
			}
		})))
		if err != nil || len(left) != 0 || done.Load() != 21 || open.Load() != 0 {
			t.Errorf("%v, %d left, %d done, %d have not ended", err, len(left), done.Load(), open.Load())
		}
		// Three others may have taken one item before they left.
		if most.Load() > 4 {
			t.Errorf("%d at once", most.Load())
		}
	})
}

// However many come and go, each item is worked on once, and Run ends.
func TestDismissRaces(t *testing.T) {
	rounds(t, 100, func(t *testing.T) {
		var open, done atomic.Int32
		const items = 300
		pushed := atomic.Int32{}
		job := crew(1+rand.IntN(6), counted(&open, func(w *steal.Worker[int], _ int) {
			done.Add(1)
			for range rand.IntN(4) {
				if pushed.Add(1) < items {
					w.Push(1)
				}
			}
			switch rand.IntN(8) {
			case 0:
				w.Dismiss(1 + rand.IntN(3))
			case 1:
				w.AddWorker()
			}
			time.Sleep(time.Duration(rand.IntN(3)))
		}))
		job.Spares += 20
		left, err := steal.Run(t.Context(), []int{0}, job)
		if want := min(pushed.Load(), items-1) + 1; err != nil || len(left) != 0 || done.Load() != want || open.Load() != 0 {
			t.Errorf("%v, %d left, %d of %d done, %d have not ended", err, len(left), done.Load(), want, open.Load())
		}
	})
}
