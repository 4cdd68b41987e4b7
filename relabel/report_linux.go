// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"
	"syscall"

	"github.com/fastlabel/fastlabel/internal/sys"
	"github.com/fastlabel/fastlabel/internal/walk"
)

// account counts and reports for a run. Workers, tasks and a caller who left them behind use it.
type account struct {
	trace Trace
	call  func(f func()) // calls the caller's code

	mu     sync.Mutex // guards the rest
	report Report     // but for the counts
	first  []error
	known  []syscall.Errno // of first
	total  walk.Tally      // but for walks under way
	walks  []*walk.Walk    // under way
}

func (a *account) locked(f func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	f()
}

func (a *account) begin(k *walk.Walk) { a.locked(func() { a.walks = append(a.walks, k) }) }

// end follows begin when k has ended. At no time are the counts of k in neither, or in both.
func (a *account) end(k *walk.Walk) {
	a.locked(func() {
		a.total.Add(k.Tally())
		a.walks = slices.DeleteFunc(a.walks, func(o *walk.Walk) bool { return o == k })
	})
}

// count counts an entry that no walk has met.
func (a *account) count(o walk.Outcome) { a.locked(func() { a.total.Count(o, 1) }) }

// recount moves an entry that was counted.
func (a *account) recount(from, to walk.Outcome) {
	a.locked(func() { a.total.Of[from]--; a.total.Of[to]++ })
}

// now returns the counts so far, and a directory that is worked on.
func (a *account) now() (t walk.Tally, path string) {
	a.locked(func() {
		t = a.total
		for _, k := range a.walks {
			t.Add(k.Tally())
			path = cmp.Or(path, k.Path())
		}
	})
	return t, path
}

func (a *account) of(o walk.Outcome) int64 {
	t, _ := a.now()
	return t.Of[o]
}

func (a *account) set(f func(report *Report)) { a.locked(func() { f(&a.report) }) }

// soFar returns the Report of a run that has ended or is left behind.
func (a *account) soFar() (report Report) {
	a.set(func(has *Report) { report = *has }) // before the counts, which are done when it says so
	report.Notes = slices.Clone(report.Notes)  // a run that is left behind may add to them
	t, _ := a.now()
	report.Counts = countsOf(t)
	return report
}

func countsOf(t walk.Tally) Counts {
	return Counts{t.Seen, t.Of[walk.Written], t.Of[walk.Right], t.Of[walk.Vanished], t.Of[walk.Skipped], t.Of[walk.Failed]}
}

func (r *relabelling) state() State {
	n, path := r.account.now()
	s := State{Counts: countsOf(n), Path: path, Entered: n.Entered}
	s.Found = max(n.Found, n.Entered) // the worker that found one may count later than the one that entered it
	if path == "" {
		for _, c := range r.run.UnderWay() {
			s.Call = cmp.Or(s.Call, c.Call)
		}
	}
	if r.waits.Load() {
		s.waits = "the volume's lock"
	} else if calls := hungCalls(r.run.Stalled()); len(calls) > 0 {
		s.waits = fmt.Sprintf("%d calls of the filesystem, one of them %s", len(calls), calls[0])
	}
	return s
}

func (a *account) fail(path, op string, err error) {
	a.count(walk.Failed)
	a.failure(path, op, err)
}

func (a *account) skip(path, reason string) {
	a.count(walk.Skipped)
	a.skipped(path, reason)
}

// mostFirst bounds the failures that are kept, beside the first of each further errno.
const mostFirst = 16

// failure, change and skipped report what is counted elsewhere.
func (a *account) failure(path, op string, err error) {
	f := &fs.PathError{Op: op, Path: path, Err: err}
	var e syscall.Errno // 0 stands for all errors that have none
	_ = errors.As(err, &e)
	a.mu.Lock()
	fresh := !slices.Contains(a.known, e)
	if fresh {
		a.known = append(a.known, e)
	}
	if fresh || len(a.first) < mostFirst {
		a.first = append(a.first, f)
	}
	a.mu.Unlock()
	if a.trace.Failure != nil {
		a.call(func() { a.trace.Failure(f) })
	}
}

func (a *account) change(path, from, to string) {
	if a.trace.Change != nil {
		a.call(func() { a.trace.Change(path, from, to) })
	}
}

func (a *account) skipped(path, reason string) {
	if a.trace.Skip != nil {
		a.call(func() { a.trace.Skip(path, reason) })
	}
}

// note reports what is done otherwise than asked.
func (a *account) note(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	a.set(func(report *Report) { report.Notes = append(report.Notes, text) })
	if a.trace.Note != nil {
		a.call(func() { a.trace.Note(text) })
	}
}

// failures is nil if nothing has failed by now.
func (r *relabelling) failures() error {
	n := r.account.of(walk.Failed)
	r.account.mu.Lock()
	first := slices.Clone(r.account.first)
	r.account.mu.Unlock()
	if broken := r.run.Broken(); broken != nil {
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

// noLabels is the reason for a mount that is skipped, and for a root that is an error.
const noLabels = "the filesystem does not support labels: nothing to label there"

// rootError words an error of the root itself.
func rootError(err error) error {
	if errors.Is(err, syscall.ENOTSUP) {
		return fmt.Errorf("%w: %s", err, noLabels)
	}
	return err
}

func pathError(op, path string, e sys.Errno) *fs.PathError {
	return &fs.PathError{Op: op, Path: path, Err: e}
}
