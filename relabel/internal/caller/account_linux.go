// SPDX-License-Identifier: Apache-2.0

package caller

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"syscall"

	"github.com/fastlabel/fastlabel/relabel/internal/steal"
	"github.com/fastlabel/fastlabel/relabel/internal/walk"
	"github.com/fastlabel/fastlabel/relabel/internal/watch"
)

// Kept is how many failures are kept, beside the first of each further errno: who asks whether
// there was one finds it. All of them are counted, and told.
const Kept = 16

// Told are the caller's functions; a nil one is told nothing.
type Told struct {
	Failure func(error)
	Change  func(path, from, to string)
	Skip    func(path, reason string)
	Stall   func(calls []watch.Call) // what the run waits for, when nothing moves
	Note    func(text string)
	Wait    func(holder string) // of the volume's lock
}

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

// Fail counts a failure, and tells of it.
func (r *Run) Fail(path, op string, err error) {
	r.Count(walk.Failed)
	r.Failure(path, op, err)
}

// Leave counts what is left alone, and tells of it.
func (r *Run) Leave(path, reason string) {
	r.Count(walk.Skipped)
	r.Skip(path, reason)
}

// Failure tells of a failure.
func (r *Run) Failure(path, op string, err error) {
	f := &fs.PathError{Op: op, Path: path, Err: err}
	var e syscall.Errno // 0 stands for all errors that have none
	_ = errors.As(err, &e)
	r.mu.Lock()
	fresh := !slices.Contains(r.known, e)
	if fresh {
		r.known = append(r.known, e)
	}
	if fresh || len(r.first) < Kept {
		r.first = append(r.first, f)
	}
	r.mu.Unlock()
	if r.Told.Failure != nil {
		r.Call(func() { r.Told.Failure(f) })
	}
}

// Change tells of a label that was written.
func (r *Run) Change(path, from, to string) {
	if r.Told.Change != nil {
		r.Call(func() { r.Told.Change(path, from, to) })
	}
}

// Skip tells of what is left alone.
func (r *Run) Skip(path, reason string) {
	if r.Told.Skip != nil {
		r.Call(func() { r.Told.Skip(path, reason) })
	}
}

// Note tells of what is done otherwise than asked.
func (r *Run) Note(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	r.mu.Lock()
	r.notes = append(r.notes, text)
	r.mu.Unlock()
	if r.Told.Note != nil {
		r.Call(func() { r.Told.Note(text) })
	}
}

// Notes are all so far.
func (r *Run) Notes() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.notes)
}

// Failures are how many were counted so far, and the first that were told.
func (r *Run) Failures() (n int64, first []error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.total.Of[walk.Failed], slices.Clone(r.first)
}
