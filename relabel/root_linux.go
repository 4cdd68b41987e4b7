// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"context"
	"io/fs"
	"syscall"

	"github.com/fastlabel/fastlabel/internal/secctx"
	"github.com/fastlabel/fastlabel/relabel/internal/caller"
	"github.com/fastlabel/fastlabel/relabel/internal/commit"
	"github.com/fastlabel/fastlabel/relabel/internal/mounts"
	"github.com/fastlabel/fastlabel/relabel/internal/policy"
	"github.com/fastlabel/fastlabel/relabel/internal/sys"
	"github.com/fastlabel/fastlabel/relabel/internal/walk"
	"github.com/fastlabel/fastlabel/relabel/internal/watch"
	"github.com/fastlabel/fastlabel/relabel/internal/xattrio"
)

func inspect(root, label string, skip Skip) (s RootState, err error) {
	r := &run{main: new(caller.Task)} // which is not watched
	if err := r.wanted(label); err != nil {
		return s, err
	}
	defer r.end()
	err = probing.Ask(watch.Call{Call: "Inspect", Path: root}, func() (err error) {
		if err = r.openProc(); err != nil {
			return err
		}
		if err = r.askPolicy(); err != nil {
			return err
		}
		if err = r.openRoot(root); err == nil {
			s, err = r.inspect(r.root)
		}
		return err
	})
	if err == nil && s.Labelled && skip == SkipTop {
		s.Labelled, err = r.entriesHave(r.root)
	}
	return s, err
}

// volumeAt says which volume root is.
func volumeAt(root string) (v mounts.Volume, err error) {
	err = probing.Ask(watch.Call{Call: "openat", Path: root}, func() (err error) {
		v, err = mounts.VolumeAt(root)
		return err
	})
	return v, err
}

// inspect reads the root's own label.
func (r *run) inspect(root *mount) (s RootState, err error) {
	trust, has, err := r.topHas(root)
	if err != nil {
		return s, err
	}
	if s.Label, s.Labelled = has, trust == commit.Trusted; trust == commit.Hidden {
		return s, &fs.PathError{Op: "getxattr", Path: root.Path, Err: &policy.Denied{Errno: syscall.EPERM, Why: hidden}}
	}
	if !s.Labelled && !r.proc.Plain(root.Mount) {
		if err := r.learn(root); err != nil {
			return s, err
		}
	}
	byRules := !s.Labelled && commit.Disavowed(root.At)
	// A root that has the label is not trusted where that is a seal.
	s.Interrupted = !s.Labelled && s.Label == r.want && !byRules || secctx.IsSeal(s.Label, r.want)
	return s, nil
}

// trusted completes the report if what Options.Skip names has the label.
func (r *run) trusted(root *mount) (bool, error) {
	if r.o.Skip != SkipRoot && r.o.Skip != SkipTop && !r.joined {
		return false, nil
	}
	trust, _, err := r.topHas(root)
	ok := trust == commit.Trusted || trust == commit.Hidden && r.joined
	if trust == commit.Hidden && r.held == nil {
		r.note("the tree is read: %s", hidden)
	}
	if ok && r.o.Skip == SkipTop {
		ok, err = r.entriesHave(root)
	}
	if ok {
		r.Count(walk.Right)
		r.tell(func(report *Report) { report.Trusted, report.Complete = true, true })
	}
	return ok, err
}

// hidden is why a process cannot trust a root by its label.
const hidden = "the root has the label, but only with CAP_SYS_ADMIN can it be seen if the relabel was completed"

// topHas returns what the label on the top of m says of the tree, and which it is.
func (r *run) topHas(m *mount) (commit.Trust, string, error) {
	m.now("getxattr")
	defer m.now("")
	fd, way := m.At, sys.ByDescriptor
	if m.small { // it is open
		fd, way = m.Top, sys.Opened
	}
	trust, has, op, e := commit.Look(way, fd, m.Stat.Kind == sys.KindDir, r.want)
	if e != 0 {
		return trust, "", r.fatal(pathError(op, m.Path, e))
	}
	return trust, has, nil
}

// entriesHave reports whether the root's own entries have the label. A file has none.
func (r *run) entriesHave(root *mount) (bool, error) {
	if root.Stat.Kind != sys.KindDir {
		return true, nil
	}
	root.now("openat")
	defer root.now("")
	fd, e := mounts.Reopen(root.At)
	if e != 0 {
		return false, pathError("openat", root.Path, e)
	}
	defer sys.Close(fd)
	return commit.EntriesHave(fd, root.Path, r.want)
}

// openCommit opens the label of the root, which is enclosed.
func (r *run) openCommit(root *mount) (c *commit.Root, err error) {
	top := &root.top
	c, err = commit.Open(commit.Run{
		FD: root.Top, Kind: root.Kind, Path: root.Path, Want: r.want, Stale: root.Stale,
		DryRun: r.o.inner.check, NoSeal: r.o.Advanced.NoSeal, Sync: r.o.Sync,
		Order:   func() commit.Order { return r.order(root, root.Top) },
		At:      root.now,
		Note:    r.note,
		Failed:  r.failures,
		Written: func() int64 { return r.Counted(walk.Written) },
		Refused: func(e sys.Errno) error { return r.refused(root, e) },
		Labelled: func(wrote bool) {
			top.Outcome = walk.Right
			if wrote {
				top.Outcome = walk.Written
			}
			r.Recount(walk.Skipped, top.Outcome) // until now it counted as skipped
			if wrote {
				r.change(root.Path, c.Found, r.want)
			}
			r.Second(c.Revoke)
		},
		Withheld: func() {
			if top.Outcome != walk.Skipped && !top.Spoiled {
				r.Recount(top.Outcome, walk.Skipped)
			}
		},
		Reread: func(ctx context.Context) (int64, error) { return r.reread(ctx, root) },
	})
	return c, r.fatal(err)
}

// refused returns the error where the kernel refused the root's label with e.
func (r *run) refused(root *mount, e sys.Errno) error {
	loaded := r.job(root).Policy // nil where SELinux is off
	now := func(call xattrio.SyscallKind) { root.now(call.String()) }
	defer root.now("")
	err := loaded.Why(xattrio.New(""), xattrio.Target{FD: root.Top}, r.want, e, now)
	return r.fatal(&fs.PathError{Op: "fsetxattr", Path: root.Path, Err: err})
}

// reread labels the root's own entries again, and returns how many were wrong.
func (r *run) reread(ctx context.Context, root *mount) (int64, error) {
	root.now("openat")
	fd, e := mounts.Reopen(root.Top)
	root.now("")
	if e != 0 {
		return 0, pathError("openat", root.Path, e)
	}
	defer sys.Close(fd)
	top := walk.Top{FD: fd, Outcome: root.top.Outcome, Rereading: true}
	before := r.Counted(walk.Written)
	if r.writes == walk.Guess {
		r.writes = walk.ReadFirst
	}
	err := r.walk(ctx, r.main, root, &top)
	root.top.Spoiled = top.Spoiled
	return r.Counted(walk.Written) - before, err
}
