// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"context"
	"io/fs"
	"syscall"

	"github.com/fastlabel/fastlabel/internal/commit"
	"github.com/fastlabel/fastlabel/internal/mounts"
	"github.com/fastlabel/fastlabel/internal/policy"
	"github.com/fastlabel/fastlabel/internal/run"
	"github.com/fastlabel/fastlabel/internal/secctx"
	"github.com/fastlabel/fastlabel/internal/sys"
	"github.com/fastlabel/fastlabel/internal/walk"
	"github.com/fastlabel/fastlabel/internal/xattrio"
)

func inspect(root, label string, skip Skip) (s RootState, err error) {
	r := newRelabelling(Options{}, inner{}, root, label)
	if err := r.canonical(); err != nil {
		return s, err
	}
	defer r.close()
	err = probing.Ask(run.Call{Call: "Inspect", Path: root}, func() (err error) {
		if err = r.openProc(); err != nil {
			return err
		}
		if err = r.askPolicy(); err != nil {
			return err
		}
		if err = r.openRoot(); err == nil {
			s, err = r.inspect()
		}
		if err == nil && s.Labelled && skip == SkipTop {
			s.Labelled, err = r.entriesHave()
		}
		return err
	})
	return s, err
}

func threadIsApart() bool { return mounts.ThreadIsApart() }

// volumeAt returns the volume that root is, and key with its mount, if the mount matters.
func volumeAt(root string, key request) (v mounts.Volume, with request, err error) {
	err = probing.Ask(run.Call{Call: "openat", Path: root}, func() (err error) {
		v, err = mounts.VolumeAt(root)
		return err
	})
	if key.skip != SkipRoot {
		key.by = v
	}
	return v.ByAnyMount(), key, err
}

func (r *relabelling) inspect() (s RootState, err error) {
	trust, has, err := r.trustOf(r.root)
	if err != nil {
		return s, err
	}
	if s.Label, s.Labelled = has, trust == commit.Trusted; trust == commit.Hidden {
		return s, &fs.PathError{Op: "getxattr", Path: r.path, Err: &policy.Denied{Errno: syscall.EPERM, Why: hidden}}
	}
	if !s.Labelled && !r.proc.Plain(r.root) {
		if err := r.learn(); err != nil {
			return s, err
		}
	}
	byRules := !s.Labelled && commit.HasRules(r.root.At)
	// A root that has the label is not trusted where that is a seal.
	s.Interrupted = !s.Labelled && s.Label == r.want && !byRules || secctx.IsSeal(s.Label, r.want)
	return s, nil
}

// trusted completes the report if what Options.Skip names has the label.
func (r *relabelling) trusted() (bool, error) {
	if r.o.Skip != SkipRoot && r.o.Skip != SkipTop && !r.joined {
		return false, nil
	}
	trust, _, err := r.trustOf(r.root)
	ok := trust == commit.Trusted || trust == commit.Hidden && r.joined
	if trust == commit.Hidden && r.volumeLock == nil {
		r.account.note("the tree is read: %s", hidden)
	}
	if ok && r.o.Skip == SkipTop {
		ok, err = r.entriesHave()
	}
	if ok {
		r.account.count(walk.Right)
		r.account.set(func(report *Report) { report.Trusted, report.Complete = true, true })
	}
	return ok, err
}

// hidden is the reason for a root that a process cannot trust by its label.
const hidden = "the top directory has the label, but only CAP_SYS_ADMIN can see if the relabel was completed"

// isRight reports whether the root is a small tree in which everything has the label. It takes
// no lock and writes nothing. The root has the label before and after: a run to another one,
// which seals the root first, has changed nothing by then.
func (r *relabelling) isRight(ctx context.Context) (bool, error) {
	if r.inner.dry || r.o.Sync {
		return false, nil
	}
	if err := r.openSmall(); err != nil || !r.small {
		r.root.Leave()
		return false, err
	}
	if trust, _, err := r.trustOf(r.root); trust == commit.Untrusted || err != nil {
		return false, err // it stays open for the walk that follows
	}
	defer func() { r.root.Leave(); r.small = false }()
	j := r.job(nil)
	j.Writes, j.Ours, j.Events = walk.DryRun, nil, walk.Events{Failed: func(string, string, error) {}}
	j.Grow = func() error { return errLarge }
	j.ByName = true // below it is seen that nothing was mounted
	top := walk.Top{FD: r.root.Top, Outcome: walk.Skipped}
	k := walk.New(j, r.root, &top, r.run.Share.Load())
	r.run.Waits(k)
	err := k.Run(ctx)
	r.run.Waits(nil)
	t := k.Tally()
	if err != nil || top.Failed || t.Of[walk.Right] != t.Seen || !r.proc.Quiet() {
		return false, nil // the walk that follows says why
	}
	if trust, _, err := r.trustOf(r.root); trust == commit.Untrusted || err != nil { // each label was read
		return false, err
	}
	r.account.end(k) // it was not begun: a look that fails counts nothing
	r.account.count(walk.Right)
	return true, r.done(nil)
}

// trustOf returns how far the label on the top of m can be trusted for the tree, and that label.
func (r *relabelling) trustOf(m *mounts.Mount) (commit.Trust, string, error) {
	m.Now("getxattr")
	defer m.Now("")
	fd, way := m.At, sys.ByDescriptor
	if m.Top >= 0 {
		fd, way = m.Top, sys.Opened
	}
	trust, has, op, e := commit.Look(way, fd, m.Stat.Kind == sys.KindDir, r.want)
	if e != 0 {
		return trust, "", rootError(pathError(op, m.Path, e))
	}
	return trust, has, nil
}

// entriesHave reports whether the root's own entries have the label. A file has none.
func (r *relabelling) entriesHave() (bool, error) {
	if r.root.Stat.Kind != sys.KindDir {
		return true, nil
	}
	r.root.Now("openat")
	defer r.root.Now("")
	fd, e := mounts.Reopen(r.root.At)
	if e != 0 {
		return false, pathError("openat", r.path, e)
	}
	defer sys.Close(fd)
	return commit.EntriesHave(fd, r.path, r.want)
}

// The run as its commit sees it: see commit.Root.

func (r *relabelling) At(call string)                  { r.root.Now(call) }
func (r *relabelling) Note(format string, args ...any) { r.account.note(format, args...) }
func (r *relabelling) Order() commit.Order             { return r.order(r.root, r.root.Top) }
func (r *relabelling) Written() int64                  { return r.account.of(walk.Written) }
func (r *relabelling) Failed() error                   { return r.failures() }

func (r *relabelling) Labelled(c *commit.Root, wrote bool) {
	r.top.Outcome = walk.Right
	if wrote {
		r.top.Outcome = walk.Written
	}
	r.account.recount(walk.Skipped, r.top.Outcome) // until now it counted as skipped
	if wrote {
		r.account.change(r.root.Path, c.Found, r.want)
	}
	r.run.Second(c.Revoke)
}

func (r *relabelling) Unlabelled() {
	if top := r.top; top.Outcome != walk.Skipped && !top.Failed {
		r.account.recount(top.Outcome, walk.Skipped)
	}
}

func (r *relabelling) Refused(e sys.Errno) error {
	loaded := r.job(nil).Policy // nil where SELinux is off
	now := func(call xattrio.SyscallKind) { r.root.Now(call.String()) }
	defer r.root.Now("")
	err := loaded.Why(xattrio.New(""), xattrio.Target{FD: r.root.Top}, r.want, e, now)
	return rootError(&fs.PathError{Op: "fsetxattr", Path: r.path, Err: err})
}

func (r *relabelling) Reread(ctx context.Context) (int64, error) {
	r.root.Now("openat")
	fd, e := mounts.Reopen(r.root.Top)
	r.root.Now("")
	if e != 0 {
		return 0, pathError("openat", r.path, e)
	}
	defer sys.Close(fd)
	top := walk.Top{FD: fd, Outcome: r.top.Outcome, Rereading: true}
	before := r.account.of(walk.Written)
	if r.writes == walk.Guess {
		r.writes = walk.ReadFirst
	}
	err := r.walk(ctx, r.root, &top, nil)
	r.top.Failed = top.Failed
	return r.account.of(walk.Written) - before, err
}
