// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"

	"github.com/fastlabel/fastlabel/internal/mountinfo"
	"github.com/fastlabel/fastlabel/relabel/internal/mounts"
	"github.com/fastlabel/fastlabel/relabel/internal/sys"
	"github.com/fastlabel/fastlabel/relabel/internal/watch"
	"github.com/fastlabel/fastlabel/relabel/internal/xattrio"
)

// submounts walks what is mounted beneath the root, each mount on its own, one
// after the other; but none waits for one that hangs.
func (r *run) submounts(ctx context.Context, root *mount) error {
	if r.o.OneFilesystem {
		return nil
	}
	type hanging struct {
		ended chan error
		share *share
	}
	var left []hanging
	var first error
	share := r.main.has()
	r.main.takes(nil)
	defer func() { r.main.takes(share) }()
	for _, info := range mountinfo.Beneath(r.proc.Mounts, root.Real) {
		t, ended := r.task(), make(chan error, 1)
		t.takes(share)
		go func() {
			ended <- r.submount(ctx, root, info, t)
			t.At("", "")
		}()
		select {
		case err := <-ended:
			t.takes(nil)
			first = cmp.Or(first, err)
		case <-t.Stalled():
			left = append(left, hanging{ended, share})
			var err error
			share, err = process.enter(ctx, runFiles+leastFiles) // the other hangs
			first = cmp.Or(first, err)
		}
		if first != nil {
			break
		}
	}
	share.waits(len(left) > 0)
	for _, h := range left {
		err := <-h.ended
		first = cmp.Or(first, err)
		h.share.close()
	}
	share.waits(false)
	return first
}

func (r *run) submount(ctx context.Context, root *mount, info mountinfo.Mount, t *task) error {
	m, passed, err := r.find(root, info, t.Activity)
	if err != nil {
		r.count(failure)
		r.reportFailure(err.Path, err.Op, err.Err)
		return nil
	}
	if m == nil {
		return nil
	}
	defer m.Close()
	path := m.Path
	why := info.Unlabelable(r.selinux)
	if why == "" && info.ReadOnly {
		why = "mounted read-only"
	}
	if k := r.proc.Kernels(info, root.Stat.Mount); k != nil {
		why = "it lies in the kernel's own filesystem (" + k.FSType + ")"
	}
	for i, id := range passed {
		if place, is := r.deny[id]; is {
			why = place.String()
			if i < len(passed)-1 {
				why = "it lies in " + place.path + ", which is never relabelled"
			}
			break
		}
	}
	for i, id := range passed {
		if r.exclude[id] != "" {
			if i < len(passed)-1 {
				return nil // beneath an exclusion, which is counted
			}
			why = excluded
		}
	}
	if why != "" {
		r.count(skipped)
		r.skip(path, why)
		return nil
	}
	return r.cross(ctx, t, m)
}

// find names the top of a mount that was in the table at the start by an O_PATH
// descriptor, and tells which identities are passed on the way to it, its own
// included. If a directory above it is renamed during the run it is looked up by
// its id; it is an error if it is no longer in the tree, or if it was unmounted and
// the directory beneath it is there, which was left out. The mount is nil if there is
// nothing to be done: it is gone, or hidden under another.
func (r *run) find(root *mount, info mountinfo.Mount, a *watch.Activity) (*mount, []mounts.ID, *fs.PathError) {
	real := root.Real
	for try := 0; ; try++ {
		rest := strings.TrimPrefix(info.Point[len(real):], "/")
		path := strings.TrimRight(root.Path, "/") + "/" + rest
		a.At("openat", path)
		fd, passed, e := mounts.Reach(root.At, rest)
		if e != 0 && xattrio.Judge(e) != xattrio.Gone && xattrio.Judge(e) != xattrio.Changed {
			return nil, nil, pathError("openat", path, e)
		}
		if e == 0 {
			a.At("statx", path)
			m, op, e := r.proc.Locate(fd, path)
			if e == 0 && m.Stat.Mount == info.ID {
				m.Real = info.Point
				return &mount{Mount: m, proc: r.proc, activity: a}, passed, nil
			}
			sys.Close(fd)
			if e != 0 {
				return nil, nil, pathError(op, path, e)
			}
		}
		all, err := r.proc.ReadTable()
		if err != nil {
			return nil, nil, &fs.PathError{Op: "read", Path: path, Err: err}
		}
		now := mountinfo.ByID(all, info.ID)
		switch {
		case mountinfo.Hidden(r.proc.Mounts, r.proc.ByID(info.ID)):
			return nil, nil, nil
		case now == nil || now.Device != info.Device:
			if e != 0 || r.leaves(info, root, passed) {
				return nil, nil, nil
			}
			return nil, nil, &fs.PathError{Op: "openat", Path: path, Err: errUnmounted}
		case mountinfo.Hidden(all, now):
			r.count(skipped)
			r.skip(path, "something was mounted over it during the run")
			return nil, nil, nil
		}
		at, e := r.proc.Where(root.Mount, all)
		switch {
		case e == syscall.EAGAIN && try < tries:
			pause(try)
			continue
		case e != 0:
			return nil, nil, pathError("readlinkat", root.Path, e)
		case len(mountinfo.Beneath([]mountinfo.Mount{*now}, at)) == 0:
			return nil, nil, &fs.PathError{Op: "openat", Path: path, Err: fmt.Errorf("what is mounted here was moved out of the tree, to %s", now.Point)}
		case try == tries:
			return nil, nil, &fs.PathError{Op: "openat", Path: path, Err: errors.New("what is mounted here is moved faster than it can be opened")}
		}
		real, info = at, *now
		pause(try)
	}
}

var errUnmounted = errors.New("what was mounted here was unmounted during the run, and what lay beneath it was left out")

// leaves says whether the directory on which m was mounted is left alone in any case.
func (r *run) leaves(m mountinfo.Mount, root *mount, passed []mounts.ID) bool {
	for _, id := range passed {
		if _, is := r.deny[id]; is || r.exclude[id] != "" {
			return true
		}
	}
	in := r.proc.ByID(m.Parent)
	return in != nil && r.proc.Kernels(*in, root.Stat.Mount) != nil
}

// cross labels one mount beneath the root, its top first.
func (r *run) cross(ctx context.Context, t *task, m *mount) error {
	w := r.worker(m, nil)
	w.io.Way = xattrio.ByDescriptor
	top := xattrio.Target{FD: m.At, Pinned: true}
	m.activity.At("getxattr", m.Path)
	if _, _, e := w.io.Read(top); e == syscall.ENOTSUP {
		r.count(skipped)
		r.skip(m.Path, "the filesystem does not bear labels")
		return nil
	}
	if m.Stat.Kind != sys.KindDir {
		r.expectCopies(m)
		o := w.alone(top, &dir{mount: m})
		r.count(o)
		return nil
	}
	if op, e := r.enclose(m); e != 0 {
		r.count(failure)
		r.reportFailure(m.Path, op, e)
		return nil
	}
	defer m.leave()
	if _, readOnly, e := sys.Subvolume(int(m.top.fd)); e == 0 && readOnly {
		r.count(skipped)
		r.skip(m.Path, readOnlySubvolume)
		return nil
	}
	m.top.outcome = w.alone(top, m.top)
	r.count(m.top.outcome)
	if err := r.walk(ctx, t, m, []item{{dir: m.top}}); err != nil {
		return err
	}
	if !r.o.DryRun && !r.o.NoSync && r.commit.Unsynced() {
		m.activity.At("syncfs", m.Path)
		if e := sys.Syncfs(int(m.top.fd)); e != 0 {
			r.count(failure)
			r.reportFailure(m.Path, "syncfs", e)
		}
	}
	return nil
}
