// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"context"
	"io/fs"
	"sync/atomic"
	"time"

	"github.com/fastlabel/fastlabel/internal/commit"
	"github.com/fastlabel/fastlabel/internal/mounts"
	"github.com/fastlabel/fastlabel/internal/policy"
	"github.com/fastlabel/fastlabel/internal/run"
	"github.com/fastlabel/fastlabel/internal/secctx"
	"github.com/fastlabel/fastlabel/internal/sys"
	"github.com/fastlabel/fastlabel/internal/walk"
)

// relabelling is one call of Tree, Verify, Inspect, Apply or Chcon: what its steps have in common.
type relabelling struct {
	o     Options
	inner inner
	path  string
	want  string // the label; in canonical form once it was looked at
	rules *rules // of Apply; nil: all get want

	run     *run.Run
	account account

	capabilities capabilities
	slash        mounts.Seen // what the caller's thread sees at /
	proc         *mounts.Proc
	policy       *policy.Policy
	bounds       mounts.Bounds
	root         *mounts.Mount
	top          walk.Top // of the root
	small        bool     // the root is not enclosed yet: see grow
	writes       walk.Writes
	volumeLock   *commit.Lock // nil: none
	waits        atomic.Bool  // for the lock
	joined       bool         // a call like this one had the lock until it was this one's turn
	commit       *commit.Root // of a root that may be written
}

func tree(ctx context.Context, path, label string, o Options, in inner) (Report, error) {
	r := newRelabelling(o, in, path, label)
	return r.execute(ctx, r.tree)
}

// tree is the whole path. What a step opens is closed, and the lock released, when the last call has
// returned, be that after Tree: until then a worker may write.
func (r *relabelling) tree(ctx context.Context) error {
	defer r.close()
	if err := r.open(ctx, true); err != nil {
		return err
	}
	if done, err := r.trusted(); done || err != nil {
		return err
	}
	if r.root.Stat.Kind != sys.KindDir {
		return r.file()
	}
	if done, err := r.isRight(ctx); done || err != nil {
		return err
	}
	if err := r.turn(ctx); err != nil {
		return err
	}
	if err := r.lock(ctx); err != nil {
		return err
	}
	defer r.release()
	if done, err := r.trusted(); done || err != nil { // the run that held the lock may have done the work
		return err
	}
	c, err := r.begin(ctx)
	if err != nil {
		return err
	}
	if err = r.walk(ctx, r.root, &r.top, nil); err == nil {
		err = r.submounts(ctx)
	}
	return r.done(c.End(ctx, err))
}

func newRelabelling(o Options, in inner, path, label string) *relabelling {
	r := &relabelling{o: o, inner: in, path: path, want: label, top: walk.Top{Outcome: walk.Skipped}}
	r.run = &run.Run{Hung: hung, Ended: in.ended}
	r.account = account{call: r.run.Call, report: Report{Root: path, Label: label}}
	if in.dry {
		r.writes = walk.DryRun
	}
	if o.Trace != nil {
		r.account.trace = *o.Trace
	}
	if stall := r.account.trace.Stall; stall != nil || in.idle != nil {
		r.run.Stall = func(calls []run.Call) {
			if in.idle != nil {
				in.idle()
			}
			if stall != nil {
				stall(hungCalls(calls))
			}
		}
	}
	return r
}

// execute calls what, in a goroutine beside the caller or in the caller's, and returns the report.
func (r *relabelling) execute(ctx context.Context, what func(ctx context.Context) error) (Report, error) {
	begin := time.Now()
	if r.o.Progress != nil {
		state := r.state
		r.o.Progress.state.Store(&state)
	}
	r.slash = mounts.SeenAt("/")
	call := r.run.Beside
	if r.inner.here = r.inner.here && ctx.Done() == nil && r.slash.Usual(); r.inner.here {
		call = r.run.Here
	}
	err := call(ctx, what)
	goOn(err)
	report := r.account.soFar()
	report.Elapsed = time.Since(begin)
	return report, err
}

// file labels a root that is no directory: its label says nothing but of itself.
func (r *relabelling) file() error {
	r.account.set(func(report *Report) { report.Way = "proc/fd" })
	o := r.labelTop(r.root, nil)
	if o != walk.Failed && r.o.Sync && !r.inner.dry {
		r.syncFile(r.root)
	}
	err := r.done(rootError(r.failures()))
	if err == nil && (o == walk.Vanished || o == walk.Skipped) {
		r.account.set(func(report *Report) { report.Complete = false })
	}
	return err
}

// begin makes the root ready for the walk, and seals it unless it is right.
func (r *relabelling) begin(ctx context.Context) (c *commit.Root, err error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err := r.openSmall(); err != nil {
		return nil, err
	}
	if !r.small {
		if err := r.grow(); err != nil {
			return nil, err
		}
	}
	c = &commit.Root{
		Run: r, FD: r.root.Top, Kind: r.root.Kind, Path: r.root.Path, Want: r.want, Stale: r.root.Stale,
		DryRun: r.inner.dry, NoSeal: r.o.NoSeal, Sync: r.o.Sync,
	}
	err = c.Begin(ctx)
	if c.Resumes {
		r.account.set(func(report *Report) { report.Interrupted = r.want })
	}
	if err != nil {
		return nil, rootError(err)
	}
	if !c.Right() && !r.o.Exact && !r.inner.dry {
		r.writes = walk.Guess
	}
	if !r.inner.dry {
		r.commit = c
	}
	r.top.Listed = c.Listed
	r.account.count(walk.Skipped) // the root, until it has the label
	return c, nil
}

// done completes the report if err is nil.
func (r *relabelling) done(err error) error {
	if err == nil && (!r.inner.dry || r.account.of(walk.Written) == 0) {
		r.account.set(func(report *Report) { report.Complete = true })
	}
	return err
}

// canonical sets the label, in canonical form.
func (r *relabelling) canonical() (err error) {
	if r.want, err = secctx.Canonical(r.want); err == nil {
		r.account.set(func(report *Report) { report.Label = r.want })
	}
	return err
}

// lock takes the volume's lock. A file is one call, which nothing seals or commits.
func (r *relabelling) lock(ctx context.Context) (err error) {
	if r.inner.dry || r.root.Stat.Kind != sys.KindDir {
		return nil
	}
	if proc, _ := sys.ProcDir(); proc != sys.AtFdcwd { // /run is one of an image that is built, and nobody else's
		return nil
	}
	share := r.run.Share.Load()
	defer func() {
		share.Waits(false)
		r.waits.Store(false)
	}()
	if r.o.LockTimeout > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeoutCause(ctx, r.o.LockTimeout, &fs.PathError{Op: "relabel", Path: r.path, Err: ErrLocked})
		defer stop()
	}
	wait := func() {
		share.Waits(true) // so that other volumes do not wait for who has the lock
		r.waits.Store(true)
		if r.inner.idle != nil {
			r.inner.idle()
		}
		if f := r.account.trace.Wait; f != nil {
			r.run.Call(f)
		}
	}
	r.volumeLock, err = commit.TakeLock(ctx, r.root.Stat, wait)
	r.joined = err == nil && r.inner.joins && r.volumeLock.After == r.want
	if err == nil && r.volumeLock.Unlocked != nil {
		r.account.note("no lock was taken (%v): start no second run on this volume", r.volumeLock.Unlocked)
	}
	return err
}

// turn waits until the run may walk, in a Group with a Limit.
func (r *relabelling) turn(ctx context.Context) error {
	if r.inner.turn == nil {
		return nil
	}
	share := r.run.Share.Load()
	share.Waits(true) // so that other volumes do not wait for this one
	defer share.Waits(false)
	return r.inner.turn(ctx)
}

// release releases the lock, if there is one. A run that failed may leave a root that was right as
// it was: nobody joins it.
func (r *relabelling) release() {
	r.account.set(func(report *Report) {
		if r.volumeLock != nil && r.inner.joins && report.Complete {
			r.volumeLock.Did = r.want
		}
	})
	r.volumeLock.Release()
}
