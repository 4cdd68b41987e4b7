// SPDX-License-Identifier: Apache-2.0

package steal

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestDequeOracle: items leave both ends in order, whatever was taken before.
func TestDequeOracle(t *testing.T) {
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 0))
		var d deque[int]
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
				d.pushNewest(step)
				want = append(want, step)
				continue
			case 1, 5:
				d.pushOldest(step)
				want = slices.Insert(want, 0, step)
				continue
			case 2:
				got, ok = d.takeNewest()
				if some {
					exp, want = want[len(want)-1], want[:len(want)-1]
				}
			case 3:
				got, ok = d.takeOldest()
				if some {
					exp, want = want[0], want[1:]
				}
			}
			if ok != some || got != exp {
				t.Fatalf("seed %d step %d op %d: got %d %v, want %d %v", seed, step, op, got, ok, exp, some)
			}
			if d.empty() != (len(want) == 0) {
				t.Fatalf("seed %d step %d: Empty is %v with %d items", seed, step, d.empty(), len(want))
			}
		}
	}
}
