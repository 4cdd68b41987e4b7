// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"cmp"
	"context"
	"errors"

	"github.com/fastlabel/fastlabel/internal/commit"
	"github.com/fastlabel/fastlabel/internal/mounts"
	"github.com/fastlabel/fastlabel/internal/steal"
	"github.com/fastlabel/fastlabel/internal/sys"
	"github.com/fastlabel/fastlabel/internal/walk"
	"github.com/fastlabel/fastlabel/internal/xattrio"
)

// openSmall readies the root for a walk without workers, if it may be small.
func (r *relabelling) openSmall() error {
	k, root := r.capabilities, r.root
	may := k.small && k.openat2 && (r.o.Workers < 1 || k.always) && r.o.Throttle == nil && r.rules == nil
	if r.small || !may || !r.proc.Plain(root) {
		return nil
	}
	if op, e := root.Enclose(r.bounds, mounts.Try{Openat2: true}); e != 0 {
		return rootError(pathError(op, root.Path, e))
	}
	// Where a server answers, many calls are under way at once; the order of overlayfs is in the table.
	if root.Served || k.served || root.Stale || k.stale || root.Kind == sys.Overlay {
		return nil
	}
	r.small = true
	r.ready()
	return nil
}

// errLarge is the end of a look at a tree that is not small.
var errLarge = errors.New("the tree is large")

// grow readies the root for workers.
func (r *relabelling) grow() error {
	r.small = false
	if err := r.learn(); err != nil {
		return err
	}
	if op, e := r.enclose(r.root); e != 0 {
		return rootError(pathError(op, r.path, e))
	}
	r.ready()
	return nil
}

// ready begins the walk's top at the enclosed root, and reports how entries are labelled.
func (r *relabelling) ready() {
	r.top.FD = r.root.Top
	way := r.root.Confined.String() + "/" + r.job(nil).Way(r.root).String()
	if !sys.Fast {
		way += "/slow"
	}
	r.account.set(func(report *Report) { report.Way = way })
}

// enclose readies m for the walk.
func (r *relabelling) enclose(m *mounts.Mount) (string, sys.Errno) {
	op, e := m.Enclose(r.bounds, mounts.Try{Clone: r.capabilities.clones, Openat2: r.capabilities.openat2})
	m.Served = m.Served || r.capabilities.served
	m.Stale = m.Stale || r.capabilities.stale
	return op, e
}

// order returns how the filesystem of m, which is open as fd, keeps the order of labels.
// Overlayfs does it as its upper layer.
func (r *relabelling) order(m *mounts.Mount, fd int) commit.Order {
	if m.Kind != sys.Overlay {
		return commit.OrderOf(fd, m.Kind)
	}
	info := r.proc.ByID(m.Stat.Mount)
	if info == nil {
		return commit.Unordered
	}
	m.Now("openat")
	defer m.Now("")
	upper, kind, e := m.Upper(info)
	if e != 0 {
		return commit.Unordered
	}
	defer sys.Close(upper)
	return commit.OrderOf(upper, kind)
}

// job returns what the next walk is asked to do. want is nil where all get the label of the run.
func (r *relabelling) job(want *walk.Want) *walk.Job {
	j := &walk.Job{
		Want:      cmp.Or(want, &walk.Want{Label: r.want}),
		Writes:    r.writes,
		HardLinks: walk.HardLinks(r.o.HardLinks), // they are in one order
		Workers:   r.o.Workers,
		Kernel:    r.capabilities.kernel,
		Events:    walk.Events{Failed: r.account.failure},
		Stop:      r.run.Stop,
		Throttle:  r.o.Throttle,
	}
	if r.commit != nil {
		j.Ours = r.commit.Ours
	}
	if r.rules != nil {
		j.Change = r.rules.change
	}
	if r.proc.SELinux {
		j.Policy = r.policy
	}
	if r.small {
		j.Grow = r.grow
	}
	if r.account.trace.Skip != nil {
		j.Events.Skipped = r.account.skipped
	}
	if r.account.trace.Change != nil {
		j.Events.Changed = r.account.change
	}
	return j
}

// walk labels what is beneath top, and counts it.
func (r *relabelling) walk(ctx context.Context, m *mounts.Mount, top *walk.Top, want *walk.Want) error {
	share := r.run.Share.Load()
	defer share.Shrink()
	k := walk.New(r.job(want), m, top, share)
	r.run.Waits(k)
	defer r.run.Waits(nil)
	r.account.begin(k)
	err := k.Run(ctx)
	r.account.end(k)
	if p := new(steal.Panic); errors.As(err, &p) { // in Throttle, or in the walk
		r.run.Break(err)
	}
	return err
}

// labelTop labels the top of m, and nothing beneath it.
func (r *relabelling) labelTop(m *mounts.Mount, want *walk.Want) walk.Outcome {
	m.Now(xattrio.Setxattr.String()) // or it is in the call before, which reads the label
	defer m.Now("")
	o := walk.One(r.job(want), m)
	r.account.count(o)
	return o
}
