// SPDX-License-Identifier: Apache-2.0

package steal_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/fastlabel/fastlabel/relabel/internal/steal"
)

// wide is about as large as an item gets before it is a pointer.
type wide struct {
	p    *int
	name string
	n    [4]int
}

func TestAllocs(t *testing.T) {
	run(t, []wide{{}}, 1, func(w *steal.Worker[wide], _ wide) {
		if n := testing.AllocsPerRun(100, func() {
			for range 10 {
				w.Push(wide{})
				w.Give(wide{})
			}
			for range 20 {
				w.Take()
			}
		}); n != 0 {
			t.Errorf("%v allocations to push and take 20 items, want 0", n)
		}
	})
}

func BenchmarkPushTake(b *testing.B) {
	one := func(w *steal.Worker[wide], _ wide) {
		for b.Loop() {
			w.Push(wide{})
			w.Take()
		}
	}
	if _, err := steal.Run(context.Background(), []wide{{}}, steal.Job[wide]{Begin: simple(one)}); err != nil {
		b.Fatal(err)
	}
}

// One item at a time changes hands: what it costs to wake a sleeper.
func BenchmarkHandoff(b *testing.B) {
	one := func(w *steal.Worker[chan int], item chan int) {
		if item != nil {
			item <- 1
			return
		}
		back := make(chan int)
		for b.Loop() {
			w.Push(back)
			<-back
		}
	}
	if _, err := steal.Run(context.Background(), []chan int{nil}, steal.Job[chan int]{Workers: 2, Begin: simple(one)}); err != nil {
		b.Fatal(err)
	}
}

// Items that cost nothing: all of it is the pool.
func BenchmarkTree(b *testing.B) {
	for _, workers := range []int{1, 2, 4, 16} {
		b.Run(fmt.Sprintf("workers=%d", workers), func(b *testing.B) {
			one := func(w *steal.Worker[int], n int) {
				for n > 1 { // n items in all, its own included
					half := n / 2
					w.Push(half)
					n -= half
				}
			}
			if _, err := steal.Run(context.Background(), []int{b.N}, steal.Job[int]{Workers: workers, Begin: simple(one)}); err != nil {
				b.Fatal(err)
			}
		})
	}
}
