// SPDX-License-Identifier: Apache-2.0

package run_test

import (
	"slices"
	"testing"

	"github.com/fastlabel/fastlabel/internal/run"
)

// looks is how many looks the limit has.
const looks = int(run.Limit / run.Every)

// TestActivity: a call hangs when it has taken the limit, and one that returns in time
// does not.
func TestActivity(t *testing.T) {
	a := new(run.Activity)
	alone := slices.Values([]run.Watched{a})
	a.At("openat", "/v")
	for i := range looks {
		if moves, hung := run.Look(alone); !moves || hung > 0 {
			t.Errorf("look %d: moves %t, %d hang", i, moves, hung)
		}
	}
	a.At("statx", "/v")
	if moves, hung := run.Look(alone); !moves || hung > 0 {
		t.Errorf("the next call: moves %t, %d hang", moves, hung)
	}
	for range looks {
		run.Look(alone)
	}
	if moves, hung := run.Look(alone); moves || hung != 1 || !slices.Equal(run.UnderWay(alone), []run.Call{{"statx", "/v"}}) {
		t.Errorf("moves %t, %d hang, %v is under way", moves, hung, run.UnderWay(alone))
	}
	a.At("", "")
	if moves, hung := run.Look(alone); moves || hung > 0 || len(run.UnderWay(alone)) > 0 {
		t.Errorf("between calls: moves %t, %d hang, %v is under way", moves, hung, run.UnderWay(alone))
	}
}

// worker is one that is always in a call.
type worker struct {
	at, replaced int
	can          bool // be replaced
	seen         run.Seen
}

func (w *worker) Busy() bool      { return true }
func (w *worker) Place() any      { return w.at }
func (w *worker) Call() run.Call  { return run.Call{} }
func (w *worker) Replace() bool   { w.replaced++; return w.can }
func (w *worker) Seen() *run.Seen { return &w.seen }

// TestReplaced: one worker that is held up is replaced once, before it hangs; where
// that cannot be it is tried again. While another moves all of them do.
func TestReplaced(t *testing.T) {
	a, b := new(worker), new(worker)
	if calls := run.UnderWay(slices.Values([]run.Watched{a})); len(calls) > 0 {
		t.Errorf("a call that returned just now is under way: %+v", calls)
	}
	look := func() (hung int) {
		b.at++
		moves, hung := run.Look(slices.Values([]run.Watched{a, b}))
		if !moves {
			t.Error("none moves")
		}
		return hung
	}
	for range looks/2 + 1 {
		look()
	}
	a.can = true
	for range looks - looks/2 - 1 {
		if look() > 0 {
			t.Error("one hangs already")
		}
	}
	if hung := look(); hung != 1 || a.replaced != 2 || b.replaced > 0 || !a.seen.HeldUp.Load() || b.seen.HeldUp.Load() {
		t.Errorf("%d hang, replaced %d and %d times", hung, a.replaced, b.replaced)
	}
	a.at++
	if hung := look(); hung > 0 || a.seen.HeldUp.Load() {
		t.Errorf("%d hang after the call has returned", hung)
	}
}
