// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/fastlabel/fastlabel/internal/mountinfo"
	"github.com/fastlabel/fastlabel/relabel/internal/caller"
	"github.com/fastlabel/fastlabel/relabel/internal/journal"
	"github.com/fastlabel/fastlabel/relabel/internal/walk"
	"github.com/fastlabel/fastlabel/relabel/internal/xattrio"
	"github.com/fastlabel/fastlabel/relabel/undo"
)

// job is what the run asks of its next walk, which is of m.
func (r *run) job(m *mount) *walk.Job {
	j := &walk.Job{
		Top:       cmp.Or(m.want, &walk.Want{Label: r.want}),
		Change:    r.changes,
		Writes:    r.writes,
		HardLinks: walk.HardLinks(r.o.HardLinks), // they are in one order
		Workers:   r.o.Workers,
		Kernel:    r.capabilities.kernel,
		Root:      r.commit,
		Events:    walk.Events{Failed: r.Failure},
		Stop:      r.Stop,
	}
	if r.proc.SELinux {
		j.Policy = r.policy
	}
	if r.Told.Skip != nil {
		j.Events.Left = r.Skip
	}
	if r.Told.Change != nil {
		j.Events.Changed = r.Change
	}
	if r.recorder != nil {
		j.Keep = func(pages []undo.Page) error {
			return r.Answer("Recorder.Keep", "", func() error { return r.recorder.Keep(pages) })
		}
	}
	if r.o.Throttle != nil {
		j.Throttle = func(ctx context.Context) (func(int), func()) {
			return r.Throttler(ctx, r.o.Throttle)
		}
	}
	return j
}

// walk labels what is beneath top, and adds up what was done.
func (r *run) walk(ctx context.Context, t *caller.Task, m *mount, top *walk.Top) error {
	share := t.Share.Load()
	defer share.Shrink()
	k := walk.New(r.job(m), m.Mount, top, share)
	return r.Walk(ctx, t, k)
}

// alone labels what m is of and nothing beneath it.
func (r *run) alone(m *mount) walk.Outcome {
	// Which of its two calls is under way is not told: they are alike.
	m.activity.At(xattrio.Setxattr.String(), m.Path)
	defer m.activity.At("", "")
	j := r.job(m)
	if r.byRules() { // the head of a record has what the root had, and every label is read first
		j.Keep = nil
	}
	o := walk.One(j, m.Mount)
	r.Count(o)
	return o
}

// beginRecord has all that is written from now on recorded. was is the root's own
// label.
func (r *run) beginRecord(root *mount, was undo.Former) error {
	if r.o.Advanced.Recorder == nil || r.o.inner.check {
		return nil
	}
	if !r.o.OneFilesystem && len(mountinfo.Beneath(r.proc.Mounts, root.Real)) > 0 {
		return fmt.Errorf("%s: %w: a record is of one filesystem, and another is mounted beneath: leave it alone here, and record it by itself", root.Path, errors.ErrUnsupported)
	}
	if !root.Told() {
		return fmt.Errorf("%s: %w: a record has the path of the root, and this is longer than the kernel takes", root.Path, errors.ErrUnsupported)
	}
	label := r.want
	if r.byRules() {
		label = ""
	}
	h, e := journal.Head(root.Mount, label, was)
	if e != 0 {
		return pathError("statx", root.Path, e)
	}
	r.main.At("fdatasync", root.Path)
	defer r.main.At("", "")
	r.recorder, r.writes = r.o.Advanced.Recorder, walk.ReadFirst
	return r.Answer("Recorder.Begin", root.Path, func() error { return r.recorder.Begin(h) })
}
