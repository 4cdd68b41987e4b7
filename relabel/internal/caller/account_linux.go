// SPDX-License-Identifier: Apache-2.0

package caller

import (
	"context"
	"errors"

	"github.com/fastlabel/fastlabel/relabel/internal/steal"
	"github.com/fastlabel/fastlabel/relabel/internal/walk"
)

// Walk runs k as the walk of t, and adds its counts to the run's.
func (r *Run) Walk(ctx context.Context, t *Task, k *walk.Walk) error {
	t.At("", "") // its workers say it
	t.Walk.Store(k)
	err := k.Run(ctx)
	r.mu.Lock()
	r.total.Add(k.Tally()) // at no time is it in neither, or in both
	t.Walk.Store(nil)
	r.mu.Unlock()
	if p := new(steal.Panic); errors.As(err, &p) { // in Throttle, or in the walk
		r.Break(err)
	}
	return err
}

// Look runs k as a walk of t that is not counted.
func (r *Run) Look(ctx context.Context, t *Task, k *walk.Walk) error {
	t.At("", "")
	t.Walk.Store(k)
	defer t.Walk.Store(nil)
	return k.Run(ctx)
}

// Add counts what a walk has counted.
func (r *Run) Add(t walk.Tally) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.total.Add(t)
}

// Count counts an entry that no walk has met.
func (r *Run) Count(o walk.Outcome) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.total.Count(o, 1)
}

// Recount moves an entry that was counted.
func (r *Run) Recount(from, to walk.Outcome) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.total.Of[from]--
	r.total.Of[to]++
}

// Now is what was counted so far.
func (r *Run) Now() walk.Tally {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := r.total
	for _, t := range r.tasks {
		n.Add(t.Walk.Load().Tally())
	}
	return n
}

// Counted is how many entries have had an outcome so far.
func (r *Run) Counted(o walk.Outcome) int64 { return r.Now().Of[o] }

// Where is a directory that is worked on or, where there is none, the call under way.
func (r *Run) Where() (path, call string) {
	for _, t := range r.all() {
		if path = t.Walk.Load().Path(); path != "" {
			return path, ""
		}
		if call == "" {
			call = t.Call().Call
		}
	}
	return "", call
}
