// SPDX-License-Identifier: Apache-2.0

package watch_test

import (
	"slices"
	"testing"

	"github.com/fastlabel/fastlabel/relabel/internal/watch"
)

// looks is how many looks the limit has.
const looks = int(watch.Limit / watch.Every)

// none are the workers of who has none.
func none(func(*watch.Worker) bool) {}

// TestActivity: a call hangs when it has taken the limit, and one that returns in time
// does not.
func TestActivity(t *testing.T) {
	a := new(watch.Activity)
	a.At("openat", "/v")
	for i := range looks {
		if moves, hung := a.Look(none); !moves || hung > 0 {
			t.Errorf("look %d: moves %t, %d hang", i, moves, hung)
		}
	}
	a.At("statx", "/v")
	if moves, hung := a.Look(none); !moves || hung > 0 {
		t.Errorf("the next call: moves %t, %d hang", moves, hung)
	}
	for range looks {
		a.Look(none)
	}
	if moves, hung := a.Look(none); moves || hung != 1 || !slices.Equal(a.UnderWay(none), []watch.Call{{"statx", "/v"}}) {
		t.Errorf("moves %t, %d hang, %v is under way", moves, hung, a.UnderWay(none))
	}
	a.At("", "")
	if moves, hung := a.Look(none); moves || hung > 0 || len(a.UnderWay(none)) > 0 {
		t.Errorf("between calls: moves %t, %d hang, %v is under way", moves, hung, a.UnderWay(none))
	}
}

// TestReplaced: one worker that is held up is replaced once, before it hangs; where
// that cannot be it is tried again. While another moves the activity does.
func TestReplaced(t *testing.T) {
	at, replaced, can := [2]int{}, [2]int{}, false
	workers := make([]watch.Worker, 2)
	for i := range workers {
		workers[i].Busy = func() bool { return true }
		workers[i].Place = func() any { return at[i] }
		workers[i].Replace = func() bool { replaced[i]++; return can }
	}
	a := new(watch.Activity)
	walk := func(yield func(*watch.Worker) bool) {
		_ = yield(&workers[0]) && yield(&workers[1])
	}
	look := func() (hung int) {
		at[1]++
		moves, hung := a.Look(walk)
		if !moves {
			t.Error("it does not move")
		}
		return hung
	}
	for range looks/2 + 1 {
		look()
	}
	can = true
	for range looks - looks/2 - 1 {
		if look() > 0 {
			t.Error("one hangs already")
		}
	}
	if hung := look(); hung != 1 || replaced != [2]int{2, 0} || !workers[0].HeldUp.Load() || workers[1].HeldUp.Load() {
		t.Errorf("%d hang, replaced %v", hung, replaced)
	}
	at[0]++
	if hung := look(); hung > 0 || workers[0].HeldUp.Load() {
		t.Errorf("%d hang after the call has returned", hung)
	}
}
