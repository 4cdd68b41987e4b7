// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"cmp"
	"context"

	"github.com/fastlabel/fastlabel/relabel/internal/caller"
	"github.com/fastlabel/fastlabel/relabel/internal/walk"
	"github.com/fastlabel/fastlabel/relabel/internal/xattrio"
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
		Throttle:  r.o.Throttle,
	}
	if r.proc.SELinux {
		j.Policy = r.policy
	}
	if m.small {
		j.Grow = func() error { return r.grow(m) }
	}
	if r.Told.Skip != nil {
		j.Events.Left = r.Skip
	}
	if r.Told.Change != nil {
		j.Events.Changed = r.Change
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
	o := walk.One(r.job(m), m.Mount)
	r.Count(o)
	return o
}
