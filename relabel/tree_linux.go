// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fastlabel/fastlabel/internal/secctx"
	"github.com/fastlabel/fastlabel/relabel/internal/budget"
	"github.com/fastlabel/fastlabel/relabel/internal/caller"
	"github.com/fastlabel/fastlabel/relabel/internal/commit"
	"github.com/fastlabel/fastlabel/relabel/internal/division"
	"github.com/fastlabel/fastlabel/relabel/internal/flight"
	"github.com/fastlabel/fastlabel/relabel/internal/journal"
	"github.com/fastlabel/fastlabel/relabel/internal/mounts"
	"github.com/fastlabel/fastlabel/relabel/internal/policy"
	"github.com/fastlabel/fastlabel/relabel/internal/sys"
	"github.com/fastlabel/fastlabel/relabel/internal/walk"
	"github.com/fastlabel/fastlabel/relabel/internal/watch"
	"github.com/fastlabel/fastlabel/relabel/internal/xattrio"
	"github.com/fastlabel/fastlabel/relabel/undo"
)

// run is one call of Tree.
type run struct {
	*caller.Run
	o            Options
	trace        Trace
	want         string                                               // the label in canonical form
	wants        func(top *mount) (*walk.Want, error)                 // by rules; nil: the label
	changes      func(has, want string) (string, walk.Outcome, error) // nil: want is written
	capabilities capabilities
	proc         *mounts.Proc
	policy       *policy.Policy
	locks        commit.Locks
	file         bool // the root was no directory when it was looked at
	bounds       mounts.Bounds
	writes       walk.Writes
	recorder     undo.Recorder // nil: nothing is recorded
	main         *caller.Task
	commit       *commit.Root   // of a root that may be written
	shard        *commit.Shard  // nil: the run is of all
	part         *division.Part // that it walks
	lastRun      atomic.Int64   // State.LastRun

	mu     sync.Mutex // guards the rest, for workers, tasks and a caller who left them behind
	first  []error
	total  walk.Tally // but for walks that are under way
	report Report
}

// Tree gives root and everything beneath it the security context label. The
// Report says how far it came, also beside an error. The error is nil only if
// nothing failed: the Report is then Complete.
//
// Errors: ErrLabel, ErrRefused, errors.ErrUnsupported where the filesystem
// has no labels, the context's cause (context.Cause), an *fs.PathError for one
// failure and an *IncompleteError for several.
//
// The work is done by other threads than the caller's: where that alone has another
// mount namespace or root directory the error is ErrRefused; a working directory that it
// alone has does not count.
func Tree(ctx context.Context, root, label string, o *Options) (Report, error) {
	r, err := tree(ctx, root, label, o.orZero(), probe)
	goOn(err)
	return r, err
}

// Check is Tree without a write: it reads every label, and locks and seals nothing.
// Report.Written counts the entries that have another label, which Trace.Change is
// told; Report.Complete says that there are none.
func Check(ctx context.Context, root, label string, o *Options) (Report, error) {
	all := o.orZero()
	all.inner.check = true
	return Tree(ctx, root, label, &all)
}

func newRun(o Options) *run {
	r := &run{o: o}
	if o.Trace != nil {
		r.trace = *o.Trace
	}
	if o.inner.check {
		r.writes = walk.DryRun
	}
	r.Run = &caller.Run{Ended: o.inner.ended, Hung: hung, Panicked: panicked}
	if r.trace.Stall != nil {
		r.Stalled = func(calls []watch.Call) { r.trace.Stall(hungCalls(calls)) }
	}
	return r
}

// lead has what done to path beside the caller, and reports.
func (r *run) lead(ctx context.Context, path string, what func(ctx context.Context) error) (Report, error) {
	begin := time.Now()
	if r.o.Progress != nil {
		state := r.state
		r.o.Progress.state.Store(&state)
	}
	err := foreign(path)
	if err == nil {
		err = r.Lead(ctx, what)
	}
	return r.soFar(begin), err
}

// tree is the whole path, in the order of doc.go. ask tells what the kernel
// can do.
func tree(ctx context.Context, path, label string, o Options, ask func() capabilities) (Report, error) {
	r := newRun(o)
	r.report = Report{Root: path, Label: label}
	r.main = r.Task()
	return r.lead(ctx, path, func(ctx context.Context) error { return r.all(ctx, path, label, ask) })
}

// all is the whole run. It has a goroutine of its own, and ends when the last call
// has returned, be that after Tree: until then nothing is closed that a worker may
// yet use, and the lock is held, under which it may yet write.
func (r *run) all(ctx context.Context, path, label string, ask func() capabilities) error {
	var err error
	if r.want, err = secctx.Canonical(label); err != nil {
		return err
	}
	r.tell(func(report *Report) { report.Label = r.want })
	if share := r.o.inner.share; share != nil {
		r.main.Share.Store(share)
	} else if share, err = process.Enter(ctx, budget.RunFiles+budget.LeastFiles); err != nil {
		return err
	} else {
		r.main.Share.Store(share)
		defer func() { r.main.Share.Load().Close() }()
	}
	if err := r.checkShard(); err != nil {
		return err
	}
	if err := r.prepare(); err != nil {
		return err
	}
	defer r.proc.Close()
	defer r.locks.Close()
	if err := r.askPolicy(); err != nil {
		return err
	}
	r.tell(func(report *Report) { report.Label = r.want })

	root, err := r.openPrepared(path, ask)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := r.bounds.Admit(root.Mount); err != nil {
		return err
	}

	if done, err := r.trusted(root); done || err != nil {
		return err
	}
	if root.Stat.Kind != sys.KindDir && r.shard == nil {
		return r.single(root)
	}
	held, err := r.lockRoot(ctx, root)
	if err != nil {
		return err
	}
	defer held.Release()
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
	if err := r.learn(root); err != nil {
		return err
	}
	if err := r.admitShard(root); err != nil {
		return err
	}
	if op, e := r.enclose(root); e != 0 {
		return r.fatal(pathError(op, root.Path, e))
	}
	defer root.Leave()
	r.tell(func(report *Report) { report.Way = root.Confined.String() + "/" + r.job(root).Way(root.Mount).String() })
	c, err := r.openCommit(root)
	if err != nil {
		return err
	}
	if secctx.IsSeal(c.Found().String(), r.want) && r.shard == nil {
		r.tell(func(report *Report) { report.Interrupted = r.want })
	}
	if !c.Right() && !r.o.Advanced.Exact && !r.o.inner.check {
		r.writes = walk.Guess
	}
	r.readMark(c, root)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	was, long := journal.Former(c.Found())
	if long != 0 && r.o.Advanced.Recorder != nil {
		return pathError("fgetxattr", root.Path, long)
	}
	if err := r.beginRecord(root, was); err != nil {
		return err
	}

	walks, err := r.seal(ctx, root, c)
	if err != nil {
		return err
	}
	if !r.o.inner.check {
		r.commit = c
	}
	if r.part == nil {
		r.count(walk.Skipped) // the root, until it has the label
	}
	if walks {
		err = r.walk(ctx, r.main, root, &root.top)
	}
	if err == nil {
		err = r.submounts(ctx, root)
	}
	if r.part != nil {
		r.shard.Met = r.part.Met()
	}
	if err = c.Close(ctx, err); err == nil {
		r.tell(func(report *Report) {
			report.Proved = r.part != nil
			report.Complete = !report.Proved && (!r.o.inner.check || r.total.Of[walk.Written] == 0)
		})
	}
	return err
}

// prepare asks by path what is needed for each root. Whatever is looked up by a path
// is looked up before the root is opened.
func (r *run) prepare() error {
	excluded, err := mounts.Exclusions(r.o.Exclude)
	if err != nil {
		return err
	}
	r.bounds = mounts.Bounds{Refused: mounts.Refusals(), Excluded: excluded, OneFilesystem: r.o.OneFilesystem}
	return r.openProc()
}

// openProc opens /proc, and with it the way to the loaded policy.
func (r *run) openProc() (err error) {
	if r.proc, err = mounts.OpenProc(); err == nil {
		r.policy = &policy.Policy{Self: r.proc.Self, Mounts: r.proc.ReadTable}
	}
	return err
}

// askPolicy puts the label as the loaded policy prints it.
func (r *run) askPolicy() error {
	known, note, err := r.policy.Know(r.want)
	r.want = known
	if note != "" {
		r.note("%s", note)
	}
	return err
}

// prepareWalk asks what is needed for a directory only.
func (r *run) prepareWalk(ask func() capabilities) {
	r.capabilities = ask()
	if !r.o.inner.check {
		r.locks = commit.OpenLocks()
	}
}

// openPrepared opens the root, and prepares the walk before where it is a directory.
func (r *run) openPrepared(path string, ask func() capabilities) (*mount, error) {
	r.main.At("statx", path)
	st, e := sys.Statx(sys.AtFdcwd, sys.Cname(path))
	r.file = e == 0 && st.Kind != sys.KindDir
	if !r.file {
		r.prepareWalk(ask)
	}
	root, err := r.openRoot(path)
	if err == nil && r.file && root.Stat.Kind == sys.KindDir { // it has just become one
		root.Close()
		r.file = false
		r.prepareWalk(ask)
		root, err = r.openRoot(path)
	}
	return root, err
}

// openRoot names the root by an O_PATH descriptor, whatever its kind, and
// refuses those that must not be relabelled.
func (r *run) openRoot(path string) (*mount, error) {
	m, err := r.proc.OpenRoot(path, r.file, r.main.Activity)
	if err != nil {
		return nil, err
	}
	if want := r.o.inner.at; want != nil && mounts.VolumeOf(m.At) != *want {
		m.Close()
		return nil, &fs.PathError{Op: "openat", Path: path, Err: flight.ErrMoved}
	}
	if place, is := r.bounds.Refused[mounts.IDOf(m.Stat)]; is {
		m.Close()
		return nil, &fs.PathError{Op: "relabel", Path: path, Err: fmt.Errorf("%w: it is %s, or holds it", ErrRefused, place.Path)}
	}
	return &mount{Mount: m, activity: r.main.Activity}, nil
}

// learn reads what is mounted where, and refuses a root that cannot have a label of
// its own.
func (r *run) learn(root *mount) error {
	root.activity.At("read", "/proc/self/mountinfo")
	defer root.activity.At("", "")
	return r.proc.Learn(root.Mount)
}

// lockRoot takes the volume's lock, if there is a place for locks. A file is one call,
// which nothing seals or commits: there is nothing to lock.
func (r *run) lockRoot(ctx context.Context, root *mount) (*commit.Lock, error) {
	if r.o.inner.check || root.Stat.Kind != sys.KindDir {
		return nil, nil
	}
	if r.locks.Err != nil {
		r.note("no lock was taken: %v", r.locks.Err)
		return nil, nil
	}
	share := r.main.Share.Load()
	defer share.Waits(false)
	if r.o.inner.patience > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeoutCause(ctx, r.o.inner.patience, &fs.PathError{Op: "relabel", Path: root.Path, Err: ErrLocked})
		defer stop()
	}
	wait := func(holder string) {
		share.Waits(true) // so that other volumes do not wait for who has the lock
		if r.trace.Wait != nil {
			r.Serially("Trace.Wait", root.Path, func() { r.trace.Wait(holder) })
		}
	}
	return r.locks.Take(ctx, root.Stat, root.Path, wait)
}

// single labels a root that is no directory: there is nothing beneath it, so
// its label vouches for nothing but itself, and is written at once.
func (r *run) single(root *mount) error {
	// The table of mounts tells of layers, and where a record is of.
	if kind, e := sys.FSType(root.At); e != 0 || kind == sys.Overlay || r.o.Advanced.Recorder != nil {
		if err := r.learn(root); err != nil {
			return err
		}
	}
	r.expectCopies(root)
	r.tell(func(report *Report) { report.Way = "proc/fd" })
	if r.o.Advanced.Recorder != nil {
		io := xattrio.New("")
		has, op, e := io.Read(xattrio.Target{FD: root.At, Pinned: true})
		was, long := journal.Former(has)
		if e = cmp.Or(e, long); e != 0 {
			return r.fatal(pathError(op, root.Path, e))
		}
		if err := r.beginRecord(root, was); err != nil {
			return err
		}
	}
	o := r.alone(root)
	if o == walk.Failed {
		return r.fatal(r.failures())
	}
	r.tell(func(report *Report) { report.Complete = o == walk.Right || o == walk.Written && !r.o.inner.check })
	return nil
}
