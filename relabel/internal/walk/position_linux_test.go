// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"sync/atomic"
	"testing"

	"github.com/fastlabel/fastlabel/relabel/internal/watch"
)

// TestThrottleIsNoStall: nobody who waits for the caller is taken for held up,
// nor when it goes on. The control waits for something else.
func TestThrottleIsNoStall(t *testing.T) {
	w := &worker{}
	w.in.Store(&Dir{})
	k := &Walk{workers: make([]atomic.Pointer[worker], 1)}
	k.workers[0].Store(w)
	w.watch()
	w.watched.Replace = func() bool { return true } // there is no pool
	a := watch.New()
	look := func() (moves bool, held int) {
		for range watch.Limit/watch.Every + 1 {
			moves, held = a.Look(k.Watched)
		}
		return moves, held
	}
	a.Look(k.Watched)
	var moved bool
	var held int
	w.telling(func() { moved, held = look() })
	if moved || held > 0 {
		t.Errorf("while it waits: moves %t, held up %d", moved, held)
	}
	if moved, held = a.Look(k.Watched); !moved || held > 0 {
		t.Errorf("as it goes on: moves %t, held up %d", moved, held)
	}
	if moved, held = look(); moved || held == 0 {
		t.Errorf("control: moves %t, held up %d", moved, held)
	}
}
