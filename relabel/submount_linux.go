// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"context"
	"syscall"

	"github.com/fastlabel/fastlabel/internal/mountinfo"
	"github.com/fastlabel/fastlabel/relabel/internal/budget"
	"github.com/fastlabel/fastlabel/relabel/internal/caller"
	"github.com/fastlabel/fastlabel/relabel/internal/commit"
	"github.com/fastlabel/fastlabel/relabel/internal/mounts"
	"github.com/fastlabel/fastlabel/relabel/internal/sys"
	"github.com/fastlabel/fastlabel/relabel/internal/walk"
	"github.com/fastlabel/fastlabel/relabel/internal/xattrio"
)

// submounts walks what is mounted beneath the root, each mount on its own.
func (r *run) submounts(ctx context.Context, root *mount) error {
	if r.o.OneFilesystem {
		return nil
	}
	beneath := mountinfo.Beneath(r.proc.Mounts, root.Real)
	walk := func(i int, t *caller.Task) error { return r.submount(ctx, root, beneath[i], t) }
	enter := func() (*budget.Share, error) { return process.Enter(ctx, r.files) }
	return r.InTurn(r.main, len(beneath), walk, enter)
}

func (r *run) submount(ctx context.Context, root *mount, info mountinfo.Mount, t *caller.Task) error {
	m, why, err := root.Find(info, r.bounds, &t.Activity)
	switch {
	case err != nil:
		r.Fail(err.Path, err.Op, err.Err)
		return nil
	case m == nil:
		return nil
	}
	defer m.Close()
	if why != "" {
		r.Leave(m.Path, why)
		return nil
	}
	io := xattrio.New("")
	t.At("getxattr", m.Path)
	if _, _, e := io.Read(xattrio.Target{FD: m.At, Pinned: true}); e == syscall.ENOTSUP {
		r.Leave(m.Path, "the filesystem does not support labels")
		return nil
	}
	at := &mount{Mount: m, activity: &t.Activity, top: walk.Top{Outcome: walk.Skipped}}
	defer func() { r.settle(at, len(mountinfo.Beneath(r.proc.Mounts, m.Real)) == 0) }()
	return r.cross(ctx, t, at)
}

// cross labels one mount beneath the root, its top first.
func (r *run) cross(ctx context.Context, t *caller.Task, m *mount) error {
	if r.wants != nil {
		var err error
		if m.want, err = r.wants(m.Real, m.Stat.Kind); err != nil {
			r.Fail(m.Path, "relabel", err)
			return nil
		}
	}
	if m.Stat.Kind != sys.KindDir {
		r.expectCopies(m)
		if r.alone(m) != walk.Failed && r.relies(m) {
			r.settleFile(m)
		}
		return nil
	}
	if op, e := r.enclose(m); e != 0 {
		r.Fail(m.Path, op, e)
		return nil
	}
	defer m.Leave()
	if _, readOnly, e := sys.Subvolume(m.Top); e == 0 && readOnly {
		r.Leave(m.Path, mounts.ReadOnlySubvolume)
		return nil
	}
	if e := r.void(m); e != 0 {
		r.Fail(m.Path, "fsetxattr", e)
		return nil
	}
	if m.top.Outcome = r.alone(m); m.topOnly {
		return nil
	}
	if err := r.walk(ctx, t, m, &m.top); err != nil {
		return err
	}
	if r.relies(m) {
		r.settleOn(m, m.Top, r.order(m, m.Top))
	}
	return nil
}

// relies says that the root of the tree is about to vouch for what may not be on disk yet
// in m. What is written to the root's own filesystem is ordered with the root.
func (r *run) relies(m *mount) bool {
	return r.commit != nil && (r.o.Sync || r.commit.Unsynced()) && m.Stat.Dev != r.dev
}

// settleOn puts on disk what was written to the filesystem of m, which fd is in.
func (r *run) settleOn(m *mount, fd int, o commit.Order) {
	if op, e := o.Settle(fd, func(call string) { m.activity.At(call, m.Path) }); e != 0 {
		r.Fail(m.Path, op, e)
	}
}

// settleFile is settleOn for a file that something is mounted on. What is no regular file
// cannot be opened without an effect; most such are on tmpfs.
func (r *run) settleFile(m *mount) {
	kind, e := sys.FSType(m.At)
	if e == 0 && kind == sys.Tmpfs {
		return
	}
	m.activity.At("openat", m.Path)
	defer m.activity.At("", "")
	fd, e := -1, syscall.ENXIO
	if m.Stat.Kind == sys.KindFile {
		fd, e = sys.Reopen(m.At)
	}
	if e != 0 {
		r.Note("%s has the label, but that could not be put on disk: %v", m.Path, e)
		return
	}
	defer sys.Close(fd)
	r.settleOn(m, fd, commit.OrderOf(fd, kind))
}

// byRules says that entries get labels that differ: no label of a root vouches for them.
func (r *run) byRules() bool { return r.trustless != nil }

// void takes from m what it vouches for and the run is about to make untrue.
func (r *run) void(m *mount) (e sys.Errno) {
	if _, is := r.trustless[mounts.IDOf(m.Stat)]; is || !r.byRules() || r.o.inner.check {
		return 0
	}
	m.activity.At("fsetxattr", m.Path)
	defer m.activity.At("", "")
	m.before = r.Counted(walk.Written)
	m.first, e = commit.Disavow(m.Top, r.order(m, m.Top))
	m.disavowed = e == 0
	return e
}

// settle is called for m after void, when its walk has ended. If nothing was written in m
// it vouches again as before; all says that what is mounted beneath m, if anything is, was
// walked too.
func (r *run) settle(m *mount, all bool) {
	if !m.disavowed {
		return
	}
	m.activity.At("removexattr", m.Path)
	defer m.activity.At("", "")
	var e sys.Errno
	switch {
	case r.Counted(walk.Written) > m.before:
		var fd int
		if fd, e = mounts.Reopen(m.At); e == 0 { // a run that shares no lock may have committed it since
			_, e = commit.Disavow(fd, r.order(m, fd))
			commit.RemoveOldMark(fd)
			sys.Close(fd)
		}
	case m.first && all:
		e = commit.Avow(m.At)
	}
	if e != 0 {
		r.Note("%s: what an earlier run left on it could not be removed: %v", m.Path, e)
	}
}
