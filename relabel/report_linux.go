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

// tell changes the Report, count the counts.
func (r *run) tell(what func(report *Report)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	what(&r.report)
}

// soFar is the Report of a run that began then, and has ended or is left behind.
func (r *run) soFar(begin time.Time) Report {
	r.mu.Lock()
	defer r.mu.Unlock()
	report := r.report
	report.Notes = slices.Clone(report.Notes)
	t := r.live()
	report.Seen, report.Unchanged = t.Seen, t.Unchanged
	report.Written, report.Right = t.Of[walk.Written], t.Of[walk.Right]
	report.Vanished, report.Skipped, report.Failed = t.Of[walk.Vanished], t.Of[walk.Skipped], t.Of[walk.Failed]
	report.Elapsed = time.Since(begin)
	return report
}

// count counts an entry that no walk has met.
func (r *run) count(o walk.Outcome) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.total.Count(o)
}

// recount moves an entry that was counted.
func (r *run) recount(from, to walk.Outcome) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.total.Of[from]--
	r.total.Of[to]++
}

// counted is how many entries had an outcome so far.
func (r *run) counted(o walk.Outcome) int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.total.Of[o]
}

func (r *run) note(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	r.tell(func(report *Report) { report.Notes = append(report.Notes, text) })
	if r.trace.Note != nil {
		r.Serially("Trace.Note", "", func() { r.trace.Note(text) })
	}
}

// failed is why the run has failed by now, if it has.
func (r *run) failed() error {
	if err := r.Broken(); err != nil || len(r.first) == 0 && r.counted(walk.Failed) == 0 {
		return err
	}
	return r.failures()
}

// failures is the error for what was reported so far.
func (r *run) failures() error {
	n := r.counted(walk.Failed)
	if len(r.first) == 1 && n <= 1 {
		return r.first[0]
	}
	return &IncompleteError{Failed: n, First: r.first}
}

// fatal words an error of the root itself.
func (r *run) fatal(err error) error {
	if errors.Is(err, syscall.ENOTSUP) {
		return fmt.Errorf("%w: the filesystem does not support labels", err)
	}
	return err
}

func pathError(op, path string, e sys.Errno) *fs.PathError {
	return &fs.PathError{Op: op, Path: path, Err: e}
}
