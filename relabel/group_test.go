// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"errors"
	"io/fs"
	"slices"
	"testing"
	"time"

	"github.com/fastlabel/fastlabel/relabel/internal/flight"
	"github.com/fastlabel/fastlabel/relabel/internal/mounts"
)

const (
	labelA = "u:r:t:s0:c1"
	labelB = "u:r:t:s0:c2"
)

// TestGroupProgress: what holds a run up is told until it moves again; before that, which
// label it waits for.
func TestGroupProgress(t *testing.T) {
	var told []string
	w := flight.View[mounts.Volume, request, task]{Work: new(flight.Work[mounts.Volume, request, task])}
	trace := w.Data.tracing(&Trace{
		Wait:  func(holder string) { told = append(told, holder) },
		Stall: func(calls []HungCall) { told = append(told, calls[0].String()) },
	})
	var stages []string
	for _, stage := range []struct {
		seen int64
		what func()
	}{
		{0, func() { trace.Wait("process 12") }},
		{1, func() {}},
		{1, func() { trace.Stall([]HungCall{{"getxattr", "/v/f"}, {"openat", "/v/d"}}) }},
		{1_203_001, func() {}},
		{1_203_001, func() { w.After = &request{label: labelA} }},
	} {
		state := func() State { return State{Seen: stage.seen} }
		w.Data.progress.state.Store(&state)
		stage.what()
		w.Since = time.Now().Add(-2 * time.Minute)
		stages = append(stages, shown(w).String())
	}
	if !slices.Equal(stages, []string{
		"after 2m0s, waiting for the volume's lock, held by process 12",
		"1 entry after 2m0s",
		`1 entry after 2m0s, waiting for 2 calls of the filesystem, one of them getxattr "/v/f"`,
		"1,203,001 entries after 2m0s",
		"1,203,001 entries after 2m0s, waiting for the relabel to u:r:t:s0:c1",
	}) {
		t.Errorf("%q", stages)
	}
	if !slices.Equal(told, []string{"process 12", `getxattr "/v/f"`}) {
		t.Errorf("the caller's own callbacks were told %q", told)
	}
}

// TestPending: a caller who leaves is told how to go on, and why it was sent away.
func TestPending(t *testing.T) {
	for within, want := range map[time.Duration]string{
		2 * time.Minute: `"/v": relabelling goes on: after 5s, waiting for the relabel to u:r:t:s0:c1; ask again within 2m0s`,
		0:               `"/v": relabelling goes on: after 5s, waiting for the relabel to u:r:t:s0:c1; ask again`,
	} {
		err := &PendingError{Work: Work{Root: "/v", Elapsed: 5 * time.Second, Waits: "the relabel to " + labelA}, Within: within, Cause: fs.ErrClosed}
		if err.Error() != want || !errors.Is(err, fs.ErrClosed) {
			t.Errorf("%v\nnot\n%s", err, want)
		}
	}
}

// TestGroupRefuses: what Tree would refuse at once is refused at once.
func TestGroupRefuses(t *testing.T) {
	var g Group
	if _, err := g.Tree(t.Context(), t.TempDir(), "container_file_t", TrustNothing); !errors.Is(err, ErrLabel) {
		t.Error(err)
	}
	if r, err := g.Tree(t.Context(), "/no/such/volume", "u:r:t:s0:c1,c1", TrustNothing); !errors.Is(err, fs.ErrNotExist) || r.Label != labelA {
		t.Errorf("%+v, %v", r, err)
	}
	if all := g.Work(); len(all) > 0 {
		t.Errorf("%+v", all)
	}
}
