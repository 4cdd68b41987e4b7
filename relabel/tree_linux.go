// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"context"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/fastlabel/fastlabel/relabel/internal/caller"
	"github.com/fastlabel/fastlabel/relabel/internal/commit"
	"github.com/fastlabel/fastlabel/relabel/internal/mounts"
	"github.com/fastlabel/fastlabel/relabel/internal/policy"
	"github.com/fastlabel/fastlabel/relabel/internal/sys"
	"github.com/fastlabel/fastlabel/relabel/internal/walk"
	"github.com/fastlabel/fastlabel/relabel/internal/watch"
)

// run is one call of Tree.
type run struct {
	caller.Run
	o            Options
	trace        Trace                        // of o
	want         string                       // the label in canonical form
	rules        Rules                        // of Apply
	changes      rewrite                      // nil: want is written
	trustless    map[mounts.ID]mounts.Refused // by rules: what Tree refuses, and so nobody trusts
	capabilities capabilities
	proc         *mounts.Proc
	policy       *policy.Policy
	slash        mounts.Seen // what the caller's thread sees at /
	bounds       mounts.Bounds
	root         *mount
	held         *commit.Lock // of the volume; nil: none
	writes       walk.Writes
	main         *caller.Task
	commit       *commit.Root           // of a root that may be written
	dev          uint64                 // the root's filesystem, then
	holder       atomic.Pointer[string] // of the lock that the run waits for
	joined       bool                   // a run like this one had the lock until it was this one's turn

	mu     sync.Mutex // guards the rest, for workers, tasks and a caller who left them behind
	report Report     // but for counts
	first  []error
	known  []syscall.Errno // of first
}

func newRun(o Options, path, label string) *run {
	r := &run{o: o, report: Report{Root: path, Label: label}}
	if o.inner.check {
		r.writes = walk.DryRun
	}
	r.Hung, r.Ended = hung, o.inner.ended
	if o.Trace != nil {
		r.trace = *o.Trace
	}
	if r.trace.Stall != nil {
		r.Stall = func(calls []watch.Call) { r.trace.Stall(hungCalls(calls)) }
	}
	r.main = r.Task()
	return r
}

// lead calls what, beside the caller where he may leave, and returns the report.
func (r *run) lead(ctx context.Context, what func(ctx context.Context) error) (Report, error) {
	begin := time.Now()
	if r.o.Progress != nil {
		state := r.state
		r.o.Progress.state.Store(&state)
	}
	r.slash = mounts.SeenAt("/")
	lead := r.Lead
	if r.o.inner.patience > 0 && ctx.Done() == nil && r.slash.Usual() { // a drop-in, whose callbacks are ours
		lead = r.Here
	}
	err := lead(ctx, what)
	return r.soFar(begin), err
}

// tree is the whole path, in the order of doc.go. ask tells what the kernel
// can do.
func tree(ctx context.Context, path, label string, o Options, ask func() capabilities) (Report, error) {
	r := newRun(o, path, label)
	return r.lead(ctx, func(ctx context.Context) error { return r.all(ctx, path, label, ask) })
}

// all is the whole run. It ends when the last call
// has returned, be that after Tree: until then nothing is closed that a worker may
// yet use, and the lock is held, under which it may yet write.
func (r *run) all(ctx context.Context, path, label string, ask func() capabilities) error {
	if err := r.wanted(label); err != nil {
		return err
	}
	defer r.end()
	if err := r.begin(ctx, path, ask, r.askPolicy); err != nil {
		return err
	}
	root := r.root
	if done, err := r.trusted(root); done || err != nil {
		return err
	}
	if root.Stat.Kind != sys.KindDir {
		return r.single(root)
	}
	if done, err := r.isRight(ctx, root); done || err != nil {
		return err
	}
	if err := r.lock(ctx, root); err != nil {
		return err
	}
	return r.relabel(ctx, root)
}

// relabel is the part of the path that holds the lock.
func (r *run) relabel(ctx context.Context, root *mount) error {
	// The run that held the lock before may have done the work.
	if done, err := r.trusted(root); done || err != nil {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := r.open(root); err != nil {
		return err
	}
	c, err := r.openCommit(root)
	if err != nil {
		return err
	}
	if c.Resumes {
		r.tell(func(report *Report) { report.Interrupted = r.want })
	}
	if !c.Right() && !r.o.Advanced.Exact && !r.o.inner.check {
		r.writes = walk.Guess
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := c.Seal(ctx); err != nil {
		return err
	}
	if !r.o.inner.check {
		r.commit, r.dev = c, root.Stat.Dev
	}
	root.top.Listed = c.Listed
	r.Count(walk.Skipped) // the root, until it has the label
	err = r.walk(ctx, r.main, root, &root.top)
	if err == nil && root.small && !r.proc.Quiet() { // a mount that moved may not have been met
		err = r.grow(root)
	}
	if err == nil && !root.small { // else no mount was met
		err = r.submounts(ctx, root)
	}
	if err = c.Close(ctx, err); err == nil {
		r.tell(func(report *Report) { report.Complete = !r.o.inner.check || r.Counted(walk.Written) == 0 })
	}
	return err
}

// single labels a root that is no directory: there is nothing beneath it, so
// its label vouches for nothing but itself, and is written at once.
func (r *run) single(root *mount) error {
	// The table of mounts tells of layers.
	if kind, e := sys.FSType(root.At); e != 0 || kind == sys.Overlay {
		if err := r.learn(root); err != nil {
			return err
		}
	}
	r.expectCopies(root)
	r.tell(func(report *Report) { report.Way = "proc/fd" })
	o := r.alone(root)
	if o != walk.Failed && r.o.Sync && !r.o.inner.check {
		r.syncFile(root)
	}
	if err := r.failures(); err != nil {
		return r.fatal(err)
	}
	r.tell(func(report *Report) { report.Complete = o == walk.Right || o == walk.Written && !r.o.inner.check })
	return nil
}
