// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"cmp"
	"context"
	"errors"

	"github.com/fastlabel/fastlabel/internal/mountinfo"
	"github.com/fastlabel/fastlabel/relabel/internal/caller"
	"github.com/fastlabel/fastlabel/relabel/internal/commit"
	"github.com/fastlabel/fastlabel/relabel/internal/mounts"
	"github.com/fastlabel/fastlabel/relabel/internal/sys"
	"github.com/fastlabel/fastlabel/relabel/internal/walk"
	"github.com/fastlabel/fastlabel/relabel/internal/watch"
	"github.com/fastlabel/fastlabel/relabel/internal/xattrio"
)

// mount is a mount that the run walks, or a file.
type mount struct {
	*mounts.Mount
	activity *watch.Activity
	top      walk.Top
	want     *walk.Want // nil: the label of the run
	small    bool       // the table of mounts was not asked: see run.grow

	// By rules: see commit.Disavow, and the entries that were written before it.
	disavowed, first bool
	before           int64
}

// now names the call on m that comes next; with "" the last one has returned.
func (m *mount) now(call string) {
	path := m.Path
	if call == "" {
		path = ""
	}
	m.activity.At(call, path)
}

// open readies the root for a walk that may be of a small tree.
func (r *run) open(root *mount) error {
	if err := r.openSmall(root); err != nil || root.small {
		return err
	}
	return r.grow(root)
}

// openSmall readies the root for a walk without workers, if it may be small.
func (r *run) openSmall(root *mount) error {
	k := r.capabilities
	may := k.small && k.openat2 && (r.o.Workers < 1 || k.always) && r.o.Throttle == nil && !r.byRules()
	if root.small || !may || !r.proc.Plain(root.Mount) {
		return nil
	}
	if op, e := root.Open(r.bounds, root.activity); e != 0 {
		return r.fatal(pathError(op, root.Path, e))
	}
	// Where a server answers, many calls are under way at once, and what overlayfs copies is
	// in the table of mounts.
	if root.Served || k.served || root.Stale || k.stale || root.Kind == sys.Overlay {
		return nil
	}
	root.small, root.top.FD = true, root.Top
	r.noteWay(root)
	return nil
}

// isRight reports whether root is a small tree in which everything has the label. It takes
// no lock and writes nothing. The root has the label before and after: a run to another one,
// which seals the root first, has changed nothing by then.
func (r *run) isRight(ctx context.Context, root *mount) (bool, error) {
	if r.o.inner.check || r.o.Sync {
		return false, nil
	}
	if err := r.openSmall(root); err != nil || !root.small {
		root.Leave()
		return false, err
	}
	if trust, _, err := r.topHas(root); trust == commit.Untrusted || err != nil {
		return false, err // it stays open for the walk that follows
	}
	defer func() { root.Leave(); root.small = false }()
	j := r.job(root)
	j.Writes, j.Root, j.Events = walk.DryRun, nil, walk.Events{Failed: func(string, string, error) {}}
	j.Grow = func() error { return errLarge }
	j.ByName = true // below it is seen that nothing was mounted
	top := walk.Top{FD: root.Top, Outcome: walk.Skipped}
	k := walk.New(j, root.Mount, &top, r.main.Share.Load())
	err := r.Look(ctx, r.main, k)
	if t := k.Tally(); err != nil || top.Spoiled || t.Of[walk.Right] != t.Seen || !r.proc.Quiet() {
		return false, nil // the walk that follows says why
	}
	trust, _, err := r.topHas(root)
	ok := trust != commit.Untrusted // each label was read
	if ok {
		r.Add(k.Tally())
		r.Count(walk.Right)
		r.tell(func(report *Report) { report.Complete = true })
	}
	return ok, err
}

// errLarge is the end of a look at a tree that is not small.
var errLarge = errors.New("the tree is large")

// grow readies the root for workers.
func (r *run) grow(root *mount) error {
	root.small = false
	if err := r.learn(root); err != nil {
		return err
	}
	if op, e := r.enclose(root); e != 0 {
		return r.fatal(pathError(op, root.Path, e))
	}
	r.noteWay(root)
	return nil
}

// noteWay reports how entries are labelled.
func (r *run) noteWay(root *mount) {
	way := root.Confined.String() + "/" + r.job(root).Way(root.Mount).String()
	if !sys.Fast {
		way += "/slow"
	}
	r.tell(func(report *Report) { report.Way = way })
}

// enclose readies m for the walk.
func (r *run) enclose(m *mount) (string, sys.Errno) {
	try := mounts.Try{Clone: r.capabilities.clones, Openat2: r.capabilities.openat2}
	if op, e := m.Enclose(r.bounds, try, m.activity); e != 0 {
		return op, e
	}
	m.Served = m.Served || r.capabilities.served
	m.Stale = m.Stale || r.capabilities.stale
	m.top.FD = m.Top
	r.expectCopies(m)
	return "", 0
}

// expectCopies notes before the first change what setting labels costs on overlayfs, which
// copies a file of a lower layer up first: whole, unless it is mounted with metacopy=on
// (Documentation/filesystems/overlayfs.rst).
func (r *run) expectCopies(m *mount) {
	info := r.proc.ByID(m.Stat.Mount)
	if info != nil && info.FSType == "overlay" && !r.o.inner.check && !mountinfo.HasOption(info.Super, "metacopy=on") {
		r.note("%s is on overlayfs, which copies a file of a lower layer up whole to set its label", m.Path)
	}
}

// order returns how the filesystem of m, which is open as fd, keeps the order of labels.
// Overlayfs does it as its upper layer.
func (r *run) order(m *mount, fd int) commit.Order {
	if m.Kind != sys.Overlay {
		return commit.OrderOf(fd, m.Kind)
	}
	info := r.proc.ByID(m.Stat.Mount)
	if info == nil {
		return commit.Waits
	}
	m.now("openat")
	defer m.now("")
	upper, kind, e := m.Upper(info)
	if e != 0 {
		return commit.Waits
	}
	defer sys.Close(upper)
	return commit.OrderOf(upper, kind)
}

// job returns what the run asks of its next walk, which is of m.
func (r *run) job(m *mount) *walk.Job {
	j := &walk.Job{
		Top:       cmp.Or(m.want, &walk.Want{Label: r.want}),
		Change:    r.changes,
		Writes:    r.writes,
		HardLinks: walk.HardLinks(r.o.HardLinks), // they are in one order
		Workers:   r.o.Workers,
		Kernel:    r.capabilities.kernel,
		Root:      r.commit,
		Events:    walk.Events{Failed: r.failure},
		Stop:      r.Stop,
		Throttle:  r.o.Throttle,
	}
	if r.proc.SELinux {
		j.Policy = r.policy
	}
	if m.small {
		j.Grow = func() error { return r.grow(m) }
	}
	if r.trace.Skip != nil {
		j.Events.Left = r.skip
	}
	if r.trace.Change != nil {
		j.Events.Changed = r.change
	}
	return j
}

// walk labels what is beneath top, and counts it.
func (r *run) walk(ctx context.Context, t *caller.Task, m *mount, top *walk.Top) error {
	share := t.Share.Load()
	defer share.Shrink()
	k := walk.New(r.job(m), m.Mount, top, share)
	return r.Walk(ctx, t, k)
}

// alone labels the top of m, and nothing beneath it.
func (r *run) alone(m *mount) walk.Outcome {
	// It may be in the call before, which reads the label.
	m.now(xattrio.Setxattr.String())
	defer m.now("")
	o := walk.One(r.job(m), m.Mount)
	r.Count(o)
	return o
}
