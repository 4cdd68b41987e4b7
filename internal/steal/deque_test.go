// SPDX-License-Identifier: Apache-2.0

package steal_test

import (
	"context"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"
	"weak"

	"github.com/fastlabel/fastlabel/internal/steal"
)

// A deque does what a slice does, wherever its ring wraps and grows.
func TestDequeOracle(t *testing.T) {
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 0))
		var d steal.Deque[int]
		var want []int
		for step := range 1000 {
			// Grow first, then shrink until it is empty, at both ends.
			op := rng.IntN(6)
			if op < 2 && step >= 200 {
				op += 2
			}
			var got, exp int
			var ok bool
			some := len(want) > 0
			switch op {
			case 0, 4:
				d.PushNewest(step)
				want = append(want, step)
				continue
			case 1, 5:
				d.PushOldest(step)
				want = slices.Insert(want, 0, step)
				continue
			case 2:
				got, ok = d.TakeNewest()
				if some {
					exp, want = want[len(want)-1], want[:len(want)-1]
				}
			case 3:
				got, ok = d.TakeOldest()
				if some {
					exp, want = want[0], want[1:]
				}
			}
			if ok != some || got != exp {
				t.Fatalf("seed %d step %d op %d: got %d %v, want %d %v", seed, step, op, got, ok, exp, some)
			}
			if d.Empty() != (len(want) == 0) {
				t.Fatalf("seed %d step %d: Empty is %v with %d items", seed, step, d.Empty(), len(want))
			}
		}
	}
}

// What was taken is not kept alive by the slot it lay in.
func TestDequeForgets(t *testing.T) {
	var d steal.Deque[*[64]int]
	put := func(push func(*[64]int)) weak.Pointer[[64]int] {
		item := new([64]int)
		push(item)
		return weak.Make(item)
	}
	newest, oldest := put(d.PushNewest), put(d.PushOldest)
	kept := put(d.PushNewest)
	_, _ = d.TakeOldest()
	keep, _ := d.TakeNewest()
	_, _ = d.TakeNewest()
	for try := 0; newest.Value() != nil || oldest.Value() != nil; try++ {
		if try == 100_000 {
			t.Fatal("an item lives on in the ring that it was taken from")
		}
		runtime.GC()
		time.Sleep(time.Millisecond)
	}
	if kept.Value() == nil { // the control: the pointers are not just all nil
		t.Error("an item that is held is gone")
	}
	runtime.KeepAlive(keep)
	runtime.KeepAlive(&d)
}

// wide is about as large as an item gets before it is a pointer.
type wide [7]uintptr

func TestAllocs(t *testing.T) {
	run(t, []wide{{}}, 1, func(w *steal.Worker[wide], _ wide) {
		if n := testing.AllocsPerRun(100, func() {
			for range 10 {
				w.Push(wide{})
				w.PushOldest(wide{})
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
