// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"context"
	"errors"
	"syscall"

	"github.com/fastlabel/fastlabel/internal/mountinfo"
	"github.com/fastlabel/fastlabel/relabel/internal/caller"
	"github.com/fastlabel/fastlabel/relabel/internal/commit"
	"github.com/fastlabel/fastlabel/relabel/internal/mounts"
	"github.com/fastlabel/fastlabel/relabel/internal/sys"
	"github.com/fastlabel/fastlabel/relabel/internal/walk"
)

// submounts walks what is mounted beneath the root, each mount on its own.
func (r *run) submounts(ctx context.Context, root *mount) error {
	if r.o.OneFilesystem {
		return nil
	}
	beneath := mountinfo.Beneath(r.proc.Mounts, root.Real)
	each := func(i int, t *caller.Task) error { return r.submount(ctx, root, beneath[i], t) }
	err := r.InTurn(ctx, r.main, len(beneath), each, process)
	if err != nil || r.proc.Quiet() {
		return err
	}
	for _, info := range beneath { // one may have been unmounted or moved after its walk
		found, _, err := root.Find(info, r.bounds, &r.main.Activity)
		r.main.At("", "")
		if err != nil && r.Counted(walk.Failed) == 0 {
			r.fail(err.Path, err.Op, err.Err)
		}
		if found != nil {
			found.Close()
		}
	}
	return nil
}

func (r *run) submount(ctx context.Context, root *mount, info mountinfo.Mount, t *caller.Task) error {
	found, why, err := root.Find(info, r.bounds, &t.Activity)
	if err != nil {
		r.fail(err.Path, err.Op, err.Err)
		return nil
	}
	if found == nil {
		return nil
	}
	defer found.Close()
	m := &mount{Mount: found, activity: &t.Activity, top: walk.Top{Outcome: walk.Skipped}}
	if why == "" {
		if _, _, err := r.topHas(m); errors.Is(err, syscall.ENOTSUP) {
			why = noLabels
		}
	}
	if why != "" {
		r.leave(m.Path, why)
		return nil
	}
	defer func() { r.avow(m, len(mountinfo.Beneath(r.proc.Mounts, m.Real)) == 0) }()
	return r.cross(ctx, t, m)
}

// cross labels one mount beneath the root, its top first.
func (r *run) cross(ctx context.Context, t *caller.Task, m *mount) error {
	if r.rules.Contexts != nil {
		var err error
		if m.want, err = r.rules.Contexts.Top(m.Real, m.Stat.Kind); err != nil {
			r.fail(m.Path, "relabel", err)
			return nil
		}
	}
	if m.Stat.Kind != sys.KindDir {
		r.expectCopies(m)
		if r.alone(m) != walk.Failed && r.relies(m) {
			r.syncFile(m)
		}
		return nil
	}
	if op, e := r.enclose(m); e != 0 {
		r.fail(m.Path, op, e)
		return nil
	}
	defer m.Leave()
	if _, readOnly, e := sys.Subvolume(m.Top); e == 0 && readOnly {
		r.leave(m.Path, mounts.ReadOnlySubvolume)
		return nil
	}
	if e := r.disavow(m); e != 0 {
		r.fail(m.Path, "fsetxattr", e)
		return nil
	}
	if m.top.Outcome = r.alone(m); r.rules.RootOnly {
		return nil
	}
	if err := r.walk(ctx, t, m, &m.top); err != nil {
		return err
	}
	if r.relies(m) {
		r.sync(m, m.Top)
	}
	return nil
}

// relies reports whether the root of the tree is about to be trusted for what may not be on
// disk yet in m. What is written to the root's own filesystem is ordered with the root.
func (r *run) relies(m *mount) bool {
	return r.commit != nil && (r.o.Sync || r.commit.Unsynced()) && m.Stat.Dev != r.dev
}

// sync puts on disk what was written to the filesystem of m, which fd is in.
func (r *run) sync(m *mount, fd int) {
	if op, e := r.order(m, fd).Settle(fd, m.now); e != 0 {
		r.fail(m.Path, op, e)
	}
}

// syncFile is sync for a mount on what is no directory. Opening what is no regular file either
// would have an effect; most such are on tmpfs.
func (r *run) syncFile(m *mount) {
	if m.Kind, _ = sys.FSType(m.At); m.Kind == sys.Tmpfs { // 0 where it cannot be told
		return
	}
	m.now("openat")
	defer m.now("")
	fd, e := -1, syscall.ENXIO
	if m.Stat.Kind == sys.KindFile {
		fd, e = sys.Reopen(m.At)
	}
	if e != 0 {
		r.note("%s has the label, but that could not be put on disk: %v", m.Path, e)
		return
	}
	defer sys.Close(fd)
	r.sync(m, fd)
}

// byRules reports whether entries get labels that differ: no root is trusted for them.
func (r *run) byRules() bool { return r.trustless != nil }

// disavow makes m, which may be trusted, a mount that is not, before the run writes in it.
func (r *run) disavow(m *mount) (e sys.Errno) {
	if _, is := r.trustless[mounts.IDOf(m.Stat)]; is || !r.byRules() || r.o.inner.check {
		return 0
	}
	m.now("fsetxattr")
	defer m.now("")
	m.before = r.Counted(walk.Written)
	m.first, e = commit.Disavow(m.Top, r.order(m, m.Top))
	m.disavowed = e == 0
	return e
}

// avow follows disavow when the walk of m has ended. If nothing was written in m it is trusted
// as before; whole says that the walk has covered what is mounted beneath m.
func (r *run) avow(m *mount, whole bool) {
	if !m.disavowed {
		return
	}
	m.now("removexattr")
	defer m.now("")
	var e sys.Errno
	switch {
	case r.Counted(walk.Written) > m.before:
		var fd int
		if fd, e = mounts.Reopen(m.At); e == 0 { // a run that shares no lock may have committed it since
			_, e = commit.Disavow(fd, r.order(m, fd))
			sys.Close(fd)
		}
	case m.first && whole:
		e = commit.Avow(m.At)
	}
	if e != 0 {
		r.note("%s: what an earlier run left on it could not be removed: %v", m.Path, e)
	}
}
