// SPDX-License-Identifier: Apache-2.0

package steal_test

import (
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"github.com/fastlabel/fastlabel/internal/steal"
)

// tree is work that breeds: items are numbers, each once, below size.
type tree struct {
	size int64
	next atomic.Int64
	done []atomic.Int32 // by item
}

// margin is room for workers that looked at the size together.
const margin = 100

func newTree(size, seeds int) (*tree, []int64) {
	tr := &tree{size: int64(size), done: make([]atomic.Int32, size)}
	var items []int64
	for range seeds {
		items = append(items, tr.next.Add(1)-1)
	}
	return tr, items
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

func TestEachOnce(t *testing.T) {
	for _, workers := range crews {
		for _, seeds := range []int{1, 40} {
			t.Run(fmt.Sprintf("workers=%d/seeds=%d", workers, seeds), func(t *testing.T) {
				tr, items := newTree(2500, seeds)
				run(t, items, workers, tr.do)
				tr.check(t, nil)
				if n := tr.next.Load(); n < tr.size-margin {
					t.Errorf("control: only %d items", n)
				}
			})
		}
	}
}
