// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"context"
	"errors"
	"syscall"

	"github.com/fastlabel/fastlabel/internal/mountinfo"
	"github.com/fastlabel/fastlabel/internal/mounts"
	"github.com/fastlabel/fastlabel/internal/sys"
	"github.com/fastlabel/fastlabel/internal/walk"
)

// submounts walks what is mounted beneath the root, each mount on its own.
func (r *relabelling) submounts(ctx context.Context) error {
	if r.small && !r.proc.Quiet() { // a mount that moved may not have been met
		if err := r.grow(); err != nil {
			return err
		}
	}
	if r.small || r.o.OneFilesystem { // small: no mount was met
		return nil
	}
	beneath := mountinfo.Beneath(r.proc.Mounts, r.root.Real)
	for _, info := range beneath {
		if err := r.submount(ctx, info); err != nil {
			return err
		}
	}
	if r.proc.Quiet() {
		return nil
	}
	for _, info := range beneath { // one may have been unmounted or moved after its walk
		found, _, err := r.root.Find(info, r.bounds, &r.run.Main)
		if err != nil && r.account.of(walk.Failed) == 0 {
			r.account.fail(err.Path, err.Op, err.Err)
		}
		if found != nil {
			found.Close()
		}
	}
	return nil
}

func (r *relabelling) submount(ctx context.Context, info mountinfo.Mount) error {
	m, why, err := r.root.Find(info, r.bounds, &r.run.Main)
	if err != nil {
		r.account.fail(err.Path, err.Op, err.Err)
		return nil
	}
	if m == nil {
		return nil
	}
	defer m.Close()
	if why == "" {
		if _, _, err := r.trustOf(m); errors.Is(err, syscall.ENOTSUP) {
			why = noLabels
		}
	}
	if why != "" {
		r.account.skip(m.Path, why)
		return nil
	}
	whole := len(mountinfo.Beneath(r.proc.Mounts, m.Real)) == 0
	var d doubt
	defer r.trustAgain(m, &d, whole)
	return r.labelMount(ctx, m, &d)
}

// labelMount labels one mount by itself, its top first.
func (r *relabelling) labelMount(ctx context.Context, m *mounts.Mount, d *doubt) error {
	want, err := r.rules.want(m)
	if err != nil {
		r.account.fail(m.Path, "relabel", err)
		return nil
	}
	if m == r.root && want != nil && want.Label == "" {
		r.account.skipped(m.Path, "no rule has a label for it")
	}
	if m.Stat.Kind != sys.KindDir {
		if r.labelTop(m, want) != walk.Failed && r.mustSync(m) {
			r.syncFile(m)
		}
		return nil
	}
	if op, e := r.enclose(m); e != 0 {
		r.account.fail(m.Path, op, e)
		return nil
	}
	defer m.Leave()
	if _, readOnly, e := sys.Subvolume(m.Top); e == 0 && readOnly {
		r.account.skip(m.Path, mounts.ReadOnlySubvolume)
		return nil
	}
	if e := r.distrust(m, d); e != 0 {
		r.account.fail(m.Path, "fsetxattr", e)
		return nil
	}
	top := walk.Top{FD: m.Top, Outcome: r.labelTop(m, want)}
	if r.rules != nil && r.rules.RootOnly {
		return nil
	}
	if err := r.walk(ctx, m, &top, want); err != nil {
		return err
	}
	if r.mustSync(m) {
		r.sync(m, m.Top)
	}
	return nil
}

// mustSync reports whether the root of the tree is about to be trusted for what may not be on
// disk yet in m. What is written to the root's own filesystem is ordered with the root.
func (r *relabelling) mustSync(m *mounts.Mount) bool {
	return r.commit != nil && (r.o.Sync || r.commit.Unsynced()) && m.Stat.Dev != r.root.Stat.Dev
}

// sync puts on disk what was written to the filesystem of m, which fd is in.
func (r *relabelling) sync(m *mounts.Mount, fd int) {
	if op, e := r.order(m, fd).ToDisk(fd, m.Now); e != 0 {
		r.account.fail(m.Path, op, e)
	}
}

// syncFile is sync for a mount on what is no directory. To open a device would have an effect.
func (r *relabelling) syncFile(m *mounts.Mount) {
	if m.Kind, _ = sys.FSType(m.At); m.Kind == sys.Tmpfs { // 0 if it is not known
		return
	}
	m.Now("openat")
	defer m.Now("")
	fd, e := -1, syscall.ENXIO
	if m.Stat.Kind == sys.KindFile {
		fd, e = sys.Reopen(m.At)
	}
	if e != 0 {
		r.account.note("%s has the label, but that could not be put on disk: %v", m.Path, e)
		return
	}
	defer sys.Close(fd)
	r.sync(m, fd)
}
