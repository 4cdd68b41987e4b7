// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"syscall"
	"time"

	"github.com/fastlabel/fastlabel/relabel/internal/sys"
	"github.com/fastlabel/fastlabel/relabel/internal/walk"
)

// tell changes the Report.
func (r *run) tell(what func(report *Report)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	what(&r.report)
}

// soFar returns the Report of a run that has ended or is left behind.
func (r *run) soFar(begin time.Time) (report Report) {
	r.tell(func(has *Report) { report = *has }) // before the counts, which are done when it says so
	report.Notes = slices.Clone(report.Notes)   // a run that is left behind may add to them
	t := r.Now()
	report.Seen = t.Seen
	report.Written, report.Right = t.Of[walk.Written], t.Of[walk.Right]
	report.Vanished, report.Skipped, report.Failed = t.Of[walk.Vanished], t.Of[walk.Skipped], t.Of[walk.Failed]
	report.Elapsed = time.Since(begin)
	return report
}

// state returns how far the run is.
func (r *run) state() State {
	n := r.Now()
	var s State
	s.Path, s.Call = r.Where()
	s.Seen, s.Written, s.Right = n.Seen, n.Of[walk.Written], n.Of[walk.Right]
	s.Vanished, s.Skipped, s.Failed = n.Of[walk.Vanished], n.Of[walk.Skipped], n.Of[walk.Failed]
	s.Found, s.Entered = max(n.Found, n.Entered), n.Entered // the worker that found one may tell later than the one that entered it
	if holder := r.holder.Load(); holder != nil {
		s.waits = "the volume's lock, held by " + *holder
	} else if calls := hungCalls(r.Stalled()); len(calls) > 0 {
		s.waits = fmt.Sprintf("%d calls of the filesystem, one of them %s", len(calls), calls[0])
	}
	return s
}

// fail counts a failure, and reports it.
func (r *run) fail(path, op string, err error) {
	r.Count(walk.Failed)
	r.failure(path, op, err)
}

// leave counts what is skipped, and reports it.
func (r *run) leave(path, reason string) {
	r.Count(walk.Skipped)
	r.skip(path, reason)
}

// kept is how many failures are kept, beside the first of each further errno: who asks whether
// there was one finds it. All of them are counted, and reported.
const kept = 16

// failure reports a failure.
func (r *run) failure(path, op string, err error) {
	f := &fs.PathError{Op: op, Path: path, Err: err}
	var e syscall.Errno // 0 stands for all errors that have none
	_ = errors.As(err, &e)
	r.mu.Lock()
	fresh := !slices.Contains(r.known, e)
	if fresh {
		r.known = append(r.known, e)
	}
	if fresh || len(r.first) < kept {
		r.first = append(r.first, f)
	}
	r.mu.Unlock()
	if r.trace.Failure != nil {
		r.Call(func() { r.trace.Failure(f) })
	}
}

// change reports a label that was written.
func (r *run) change(path, from, to string) {
	if r.trace.Change != nil {
		r.Call(func() { r.trace.Change(path, from, to) })
	}
}

// skip reports what is skipped.
func (r *run) skip(path, reason string) {
	if r.trace.Skip != nil {
		r.Call(func() { r.trace.Skip(path, reason) })
	}
}

// note reports what is done otherwise than asked.
func (r *run) note(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	r.tell(func(report *Report) { report.Notes = append(report.Notes, text) })
	if r.trace.Note != nil {
		r.Call(func() { r.trace.Note(text) })
	}
}

// failures returns why the run has failed by now, if it has.
func (r *run) failures() error {
	n := r.Counted(walk.Failed)
	r.mu.Lock()
	first := slices.Clone(r.first)
	r.mu.Unlock()
	if broken := r.Broken(); broken != nil {
		first = append(first, broken)
	}
	switch {
	case len(first) == 0 && n == 0:
		return nil
	case len(first) == 1 && n <= 1:
		return first[0]
	default:
		return &IncompleteError{Failed: n, First: first}
	}
}

// noLabels is why a mount has no labels, and a root is an error.
const noLabels = "the filesystem does not support labels"

// fatal words an error of the root itself.
func (r *run) fatal(err error) error {
	if errors.Is(err, syscall.ENOTSUP) {
		return fmt.Errorf("%w: %s", err, noLabels)
	}
	return err
}

func pathError(op, path string, e sys.Errno) *fs.PathError {
	return &fs.PathError{Op: op, Path: path, Err: e}
}
