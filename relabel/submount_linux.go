// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"cmp"
	"context"
	"strings"
	"syscall"

	"github.com/fastlabel/fastlabel/relabel/internal/sys"
)

// submounts walks what is mounted beneath the root, each mount on its own, one
// after the other; but none waits for one that hangs.
func (r *run) submounts(ctx context.Context, root *root) error {
	if r.o.OneFilesystem {
		return nil
	}
	var left []chan error
	var first error
	for _, info := range beneath(r.proc.mounts, root.real) {
		s, ended := r.strand(), make(chan error, 1)
		go func() {
			ended <- r.submount(ctx, root, info, s)
			s.at("", "")
		}()
		select {
		case err := <-ended:
			first = cmp.Or(first, err)
		case <-s.stalled:
			left = append(left, ended)
		}
		if first != nil {
			break
		}
	}
	for _, ended := range left {
		err := <-ended
		first = cmp.Or(first, err)
	}
	return first
}

func (r *run) submount(ctx context.Context, root *root, info mountEntry, s *strand) error {
	rest := strings.TrimPrefix(info.point[len(root.real):], "/")
	path := strings.TrimRight(root.path, "/") + "/" + rest
	s.at("openat", path)
	fd, passed, e := root.reach(root.fd, rest)
	if e == syscall.ENOENT {
		return nil // unmounted since, or hidden under another mount
	}
	if e != 0 {
		r.count(failure)
		r.report(path, "openat", e)
		return nil
	}
	defer sys.Close(fd)
	s.at("statx", path)
	m, op, e := r.proc.locate(fd, path)
	if e != 0 {
		r.count(failure)
		r.report(path, op, e)
		return nil
	}
	if m.id != info.id {
		return nil // hidden under another mount, or gone
	}
	m.real, m.strand = info.point, s
	why := info.unlabelable(r.selinux)
	if why == "" && info.readOnly {
		why = "mounted read-only"
	}
	if k := r.proc.kernels(info, root.id); k != nil {
		why = "it lies in the kernel's own filesystem (" + k.fstype + ")"
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
	return r.cross(ctx, m, fd)
}

// cross labels one mount beneath the root, its top first.
func (r *run) cross(ctx context.Context, m *mount, fd int) error {
	w := r.worker(m, nil)
	w.hand.way = byDescriptor
	top := target{fd: fd, pinned: true}
	m.strand.at("getxattr", m.path)
	if _, _, e := w.hand.get(top); e == syscall.ENOTSUP {
		r.count(skipped)
		r.skip(m.path, "the filesystem does not bear labels")
		return nil
	}
	if m.st.Kind != sys.KindDir {
		r.expectCopies(m)
		defer m.close()
		o := w.alone(top, &dir{mount: m})
		r.add(tally{up: w.tally.up}, o)
		return nil
	}
	if op, e := r.enclose(m, fd); e != 0 {
		r.count(failure)
		r.report(m.path, op, e)
		return nil
	}
	defer m.close()
	m.top.outcome = w.alone(top, m.top)
	r.count(m.top.outcome)
	if err := r.walk(ctx, m, []item{{dir: m.top}}); err != nil {
		return err
	}
	if !r.o.DryRun && !r.o.NoSync && r.unsynced() {
		m.strand.at("syncfs", m.path)
		if e := sys.Syncfs(int(m.top.fd)); e != 0 {
			r.count(failure)
			r.report(m.path, "syncfs", e)
		}
	}
	return nil
}
