// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fastlabel/fastlabel/internal/flight"
	"github.com/fastlabel/fastlabel/internal/mounts"
	"github.com/fastlabel/fastlabel/internal/secctx"
	"github.com/fastlabel/fastlabel/internal/steal"
)

// A kubelet waits two minutes for a request, and may ask for the other containers of the pod before
// it asks again.
const twoMinutes, tenMinutes = 2 * time.Minute, 10 * time.Minute

// Group relabels each volume once at a time, however many ask for it. A caller whose context ends
// leaves at once; the work continues, and the caller who asks again for the same volume and label
// joins it. Another label for the same volume waits its turn.
//
// A volume is what a root is by filesystem and inode and, unless callers ask with SkipRoot, by mount:
// what is mounted beneath it is looked for under the path of the first caller. The zero value is ready
// for use. A Group must not be copied, nor its fields changed, after the first call.
type Group struct {
	// Options are those of each run, but for Skip, which each caller names, and Progress: see Pending.
	Options Options
	// Trace, if not nil, makes that of each run, for root as the first caller named it, in place of
	// Options.Trace. Ended, if not nil, gets the result of each run, whether a caller waits or not;
	// it must not call the Group, whose run has not ended by then.
	Trace func(root string) *Trace
	Ended func(Report, error)
	// Limit bounds the walks at a time; 0 is no limit. A run that has waited for the volume's lock, or
	// whose filesystem has not answered for a second, does not count from then on.
	Limit int
	// Linger limits how long work continues, or waits in the queue, after the last caller left; it
	// is then cancelled. At 0 and below it is ten minutes. A failure that no caller has seen is kept
	// as long, for the next who asks; after such a success SkipNone is SkipRoot for that one.
	Linger time.Duration

	once  sync.Once
	turns chan struct{} // of runs that walk; nil without a Limit
	all   flight.Group[mounts.Volume, request, task]
}

// request is a caller's, for a volume.
type request struct {
	label string // in canonical form
	skip  Skip
	by    mounts.Volume // with the mount; the zero value if that does not matter
}

// task shows a run to its callers: the report when it has ended, the rest at any time.
type task struct {
	progress Progress
	report   Report
	turn     atomic.Int32
}

// task.turn, in a Group with a Limit. It only grows: a stall may come at any time.
const (
	waitsForTurn int32 = iota + 1
	hasTurn
	hadTurn
)

func (g *Group) flights() *flight.Group[mounts.Volume, request, task] {
	g.once.Do(func() {
		g.all.At, g.all.Run, g.all.Hung = volumeAt, g.run, hungIn
		g.all.Linger = cmp.Or(max(0, g.Linger), tenMinutes)
		if g.Limit > 0 {
			g.turns = make(chan struct{}, g.Limit)
		}
	})
	return &g.all
}

// hungIn is the error for who waits in vain for root or, beside the error of a run, for its calls.
func hungIn(root string, run, cause error) error {
	left := new(HungError)
	if run == nil {
		left.Calls = []HungCall{{"openat", root}}
	} else {
		_ = errors.As(run, &left)
	}
	return &HungError{left.Calls, cause}
}

// run is a run of Tree. A panic in it is an error, which continues in its callers.
func (g *Group) run(ctx context.Context, w *flight.Work[mounts.Volume, request, task]) (err error) {
	began := false
	defer func() {
		if v := recover(); v != nil {
			p, is := v.(*steal.Panic)
			if !is { // of a callback
				p = &steal.Panic{Value: v, Stack: debug.Stack()}
			}
			if err = p; !began {
				w.Released()
			}
		}
	}()
	o, t := g.Options, &w.Data
	if g.Trace != nil {
		o.Trace = g.Trace(w.Root)
	}
	o.Skip = w.Key.skip
	if w.Again && o.Skip == SkipNone {
		o.Skip = SkipRoot // all was looked at lately
	}
	o.Progress = &t.progress
	at := cmp.Or(w.Key.by, w.ID)
	in := inner{at: &at, ended: w.Released}
	if g.turns != nil {
		in.turn = func(ctx context.Context) error { return g.take(ctx, t) }
		in.idle = func() { g.give(t) }
		defer g.give(t)
	}
	began = true
	t.report, err = tree(ctx, w.Root, w.Key.label, o, in)
	if g.Ended != nil && !errors.Is(err, flight.ErrMoved) {
		g.Ended(t.report, err)
	}
	last := func() State { return State{Counts: t.report.Counts} }
	t.progress.state.Store(&last) // the other holds what the run had
	return err
}

func (g *Group) take(ctx context.Context, t *task) error {
	t.turn.CompareAndSwap(0, waitsForTurn)
	select {
	case g.turns <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if !t.turn.CompareAndSwap(waitsForTurn, hasTurn) { // it stood still before, or was left behind
		<-g.turns
	}
	return nil
}

func (g *Group) give(t *task) {
	if t.turn.Swap(hadTurn) == hasTurn {
		<-g.turns
	}
}

// Tree is the function Tree with the Group's Options and s, shared with all who ask for the same.
// A caller with another label, or another Skip, waits for its turn. When ctx ends during the work
// the error is a *PendingError, and the work continues; or a *HungError if not even root could be
// looked at. The Report beside them has no counts. errors.Is finds in both what ended ctx.
func (g *Group) Tree(ctx context.Context, root, label string, s Skip) (Report, error) {
	report := Report{Root: root, Label: label}
	want, err := secctx.Canonical(label)
	if err != nil {
		return report, err
	}
	report.Label = want
	if threadIsApart() {
		return report, threadApart(root)
	}
	path, err := mounts.Absolute(root)
	if err != nil {
		return report, err
	}
	w, err := g.flights().Do(ctx, path, request{label: want, skip: s})
	if w.Work == nil {
		return report, err
	}
	if !w.Ended {
		p := &PendingError{Work: shown(w), Within: g.flights().Linger, Cause: err}
		p.Root = root
		return report, p
	}
	goOn(err)
	report = w.Data.report
	report.Root, report.Label = root, cmp.Or(report.Label, want) // it has none if it never began
	report.Shared, report.Notes = w.Shared, slices.Clone(report.Notes)
	return report, err
}

// Work is a relabel of a Group, in the queue or under way.
type Work struct {
	Root    string        // as the first caller named it
	Label   string        // in canonical form
	Skip    Skip          // as the callers asked for it
	Entries int64         // met so far
	Elapsed time.Duration // since it began or, if it has not, since it was asked for
	Callers int           // how many wait for it; none while it lingers
	Waits   string        // what holds it up, for people; "" if nothing is known to
}

func (p Work) String() string {
	s := "after " + p.Elapsed.Round(time.Second).String()
	if p.Entries == 1 {
		s = "1 entry " + s
	} else if p.Entries > 0 {
		s = thousands(p.Entries) + " entries " + s
	}
	if p.Waits != "" {
		s += ", waiting for " + p.Waits
	}
	return s
}

// thousands sets commas: the numbers are for people who wait.
func thousands(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Pending lists the work in the queue and under way.
func (g *Group) Pending() []Work {
	var all []Work
	for _, w := range g.flights().Works() {
		all = append(all, shown(w))
	}
	return all
}

// Stop cancels all work of the Group on the volume at root, whatever the label, waits for it
// to end, and forgets its results; callers who wait for it get ErrStopped. Then the Group holds
// nothing open there, and the volume can be unmounted. A caller who arrives after Stop begins
// anew. The volume is the one that callers named so and, if ctx lets it be looked at, the one
// there now; what is under way on a directory beneath goes on. When ctx ends first the error is a *HungError where the filesystem does not answer.
func (g *Group) Stop(ctx context.Context, root string) error {
	path, err := mounts.Absolute(root)
	if err != nil {
		return err
	}
	return g.flights().Stop(ctx, path, ErrStopped)
}

// Shutdown is Stop for all volumes, and for good.
func (g *Group) Shutdown(ctx context.Context) error { return g.flights().Shutdown(ctx, ErrStopped) }

func shown(w flight.View[mounts.Volume, request, task]) Work {
	s, _ := w.Data.progress.State()
	p := Work{
		Root: w.Root, Label: w.Key.label, Skip: w.Key.skip, Entries: s.Seen,
		Elapsed: time.Since(w.Since), Callers: w.Callers, Waits: s.waits,
	}
	if w.After != nil {
		p.Waits = "the relabel to " + w.After.label
	} else if w.Data.turn.Load() == waitsForTurn {
		p.Waits = "other volumes"
	}
	return p
}

// PendingError is for a caller whose context ended before the work, which continues or, until a caller
// is there again, keeps its place in the queue.
type PendingError struct {
	Work
	Within time.Duration // how soon a caller must ask again for the work to go on
	Cause  error         // why the caller left
}

func (e *PendingError) Error() string {
	return fmt.Sprintf("%q: relabelling continues: %v; ask again within %v", e.Root, e.Work, e.Within)
}

func (e *PendingError) Unwrap() error { return e.Cause }
