// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"context"
	"errors"

	"github.com/fastlabel/fastlabel/relabel/internal/caller"
	"github.com/fastlabel/fastlabel/relabel/internal/flight"
	"github.com/fastlabel/fastlabel/relabel/internal/mounts"
)

// run is a run of Tree, which leaves a panic to its callers.
func (g *Group) run(ctx context.Context, w *flight.Work[mounts.Volume, request, task]) (*flight.Held, error) {
	o, t := g.Options, &w.Data
	if g.Trace != nil {
		var err error
		if o.Trace, err = g.traceOf(ctx, w.Root); err != nil {
			return nil, err
		}
	}
	o.Trust, o.Trace, o.Progress = w.Key.trust, t.tracing(o.Trace), &t.progress
	closed := make(chan struct{})
	o.inner = inner{at: &w.ID, ended: func() { close(closed) }}
	report, err := tree(ctx, w.Root, w.Key.label, o, probe)
	t.report = report
	last := func() State { return State{Seen: report.Seen} }
	t.progress.state.Store(&last) // the other holds what the run had
	if h := new(HungError); errors.As(err, &h) {
		return &flight.Held{Until: closed, Error: func(cause error) error { return &HungError{h.Calls, cause} }}, err
	}
	return nil, err
}

// traceOf is what Group.Trace makes.
func (g *Group) traceOf(ctx context.Context, root string) (*Trace, error) {
	var made *Trace
	r := &caller.Run{Hung: hung, Panicked: panicked}
	err := r.Lead(ctx, func(context.Context) error {
		r.Call("Group.Trace", root, func() { made = g.Trace(root) })
		return r.Broken()
	})
	if err != nil {
		return nil, err // made may yet be written
	}
	return made, nil
}
