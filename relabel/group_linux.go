// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"context"
	"errors"
	"runtime/debug"

	"github.com/fastlabel/fastlabel/relabel/internal/dropin"
	"github.com/fastlabel/fastlabel/relabel/internal/flight"
	"github.com/fastlabel/fastlabel/relabel/internal/mounts"
	"github.com/fastlabel/fastlabel/relabel/internal/steal"
)

// failures are those of a run, in go-selinux's words.
type failures = dropin.Failures

// run is a run of Tree. A panic in it is an error, which goes on in its callers.
func (g *Group) run(ctx context.Context, w *flight.Work[mounts.Volume, request, task]) (held *flight.Held, err error) {
	o, t := g.Options, &w.Data
	closed := make(chan struct{})
	began := false
	defer func() {
		if v := recover(); v != nil { // of a callback, which goes on in the callers
			if err = (&steal.Panic{Value: v, Stack: debug.Stack()}); began {
				held = &flight.Held{Until: closed, Error: func(cause error) error { return &HungError{Cause: cause} }}
			}
		}
	}()
	if g.Trace != nil {
		o.Trace = g.Trace(w.Root)
	}
	if g.dropins {
		t.failures = dropin.New(w.Key.label, ErrRefused)
		o.Trace.Failure = t.failures.Add
	}
	trust := w.Key.trust
	if w.Again && trust == TrustNothing {
		trust = TrustRoot // all was looked at lately
	}
	o.Trust, o.Trace, o.Progress = trust, t.tracing(o.Trace), &t.progress
	o.inner = inner{at: &w.ID, ended: func() { close(closed) }}
	began = true
	report, err := tree(ctx, w.Root, w.Key.label, o, probe)
	t.report = report
	last := func() State { return State{Seen: report.Seen} }
	t.progress.state.Store(&last) // the other holds what the run had
	if h := new(HungError); errors.As(err, &h) {
		return &flight.Held{Until: closed, Error: func(cause error) error { return &HungError{h.Calls, cause} }}, err
	}
	return nil, err
}
