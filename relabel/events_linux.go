// SPDX-License-Identifier: Apache-2.0

package relabel

import "io/fs"

// keepErrors is how many failures the error that Tree returns holds. All of
// them are counted, and told to Trace.Failure.
const keepErrors = 16

func (r *run) reportFailure(path, op string, err error) {
	f := &fs.PathError{Op: op, Path: path, Err: err}
	r.mu.Lock()
	if len(r.first) < keepErrors {
		r.first = append(r.first, f)
	}
	r.mu.Unlock()
	if r.trace.Failure != nil {
		r.Serially("Trace.Failure", path, func() { r.trace.Failure(f) })
	}
}

func (r *run) change(path, from, to string) {
	if r.trace.Change != nil {
		r.Serially("Trace.Change", path, func() { r.trace.Change(path, from, to) })
	}
}

func (r *run) skip(path, reason string) {
	if r.trace.Skip != nil {
		r.Serially("Trace.Skip", path, func() { r.trace.Skip(path, reason) })
	}
}
