// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"syscall"

	"github.com/fastlabel/fastlabel/internal/mounts"
	"github.com/fastlabel/fastlabel/internal/sys"
	"github.com/fastlabel/fastlabel/internal/xattrio"
)

// enter labels the directory name in parent and starts on its entries. The
// label comes first: what is created in it from then on inherits.
func (w *worker) enter(parent *directory, name string) {
	l := &w.labels
	l.tally.Entered++
	t := xattrio.Target{Name: sys.Cname(name), Kind: sys.KindDir}
	w.pos.at(parent, t.Name)
	want, label, err := parent.want, parent.want.Label, error(nil)
	if want.Rules != nil {
		entry := []byte(name[:len(name)-1])
		label, err = want.Rules.Entry(entry, sys.KindDir)
		want = want.Rules.Beneath(entry)
	}
	w.pos.now(l.opens())
	at, op, e := w.parent.acquire(w.cache, parent)
	t.FD = at
	switch {
	case xattrio.VerdictOf(e) == xattrio.Gone:
		l.count(parent, Vanished, 1)
		return
	case e != 0:
		l.count(parent, l.fail(parent, t, op, e), 1)
		return
	}
	plain := w.mount.Confined == mounts.Clone && l.sweeps(want) && !w.readsAhead() && label != "" && err == nil && len(w.mount.Skip) == 0 && !w.mount.ByDevice
	if plain && w.visit(parent, t, name, want, label) {
		return
	}
	w.closeVisited()
	fd, o := w.open(parent, t)
	if fd < 0 {
		l.count(parent, o, 1)
		return
	}
	if o, is := l.excluded(xattrio.Target{FD: fd}, parent, t); is {
		sys.Close(fd)
		l.count(parent, o, 1)
		return
	}
	d := w.cache.opened(parent, name, fd, label, want)
	if err != nil {
		l.countDir(d, l.failed(d, xattrio.Target{}, "relabel", err))
	} else {
		l.countDir(d, l.label(xattrio.Target{FD: fd}, d))
	}
	if !d.frozen {
		w.scan(d, fd)
	}
	w.cache.release(d)
}

// visit opens the directory t, labels it and reads its first entries in one go,
// where nothing else is to be asked of it. It reports whether it could be opened so.
func (w *worker) visit(parent *directory, t xattrio.Target, name string, want *Want, label string) bool {
	l := &w.labels
	l.io.SetLabel(label)
	how, unread := sys.ReadFirst, l.guess()
	switch {
	case unread:
		how = sys.Unread
	case w.walk.job.Change != nil || w.walk.job.Writes == DryRun:
		how = sys.ReadOnly
	}
	w.pos.now(xattrio.Visit)
	v := l.io.Attr.Visit(w.visited, t.FD, t.Name, sys.OpenDir|sys.NoAtime, how, w.buf, &w.pos.step)
	w.visited = -1
	if v.FD < 0 {
		return false
	}
	d := w.cache.opened(parent, name, v.FD, label, want)
	self := xattrio.Target{FD: v.FD}
	r := result{Written, xattrio.Visits(v.Step).String(), v.Errno}
	switch {
	case v.Step == sys.StepRead:
		var has xattrio.Label
		if has, r.e = l.io.Found(v.N, v.Errno); v.Errno == syscall.ERANGE { // longer than a visit has room for
			has, _, r.e = l.io.Read(self)
		}
		if r.e == 0 { // it has another label
			r = l.attempt(self, d, &has)
		}
	case v.Wrong && !unread:
		l.wrong++
	case !v.Wrong:
		r.outcome, l.wrong = Right, 0
	}
	if v.Step <= sys.StepWrite {
		if l.countDir(d, l.finish(self, d, r)); !d.frozen {
			w.scan(d, v.FD)
		}
	} else {
		l.eios = 0
		l.countDir(d, r.outcome)
		w.pos.at(d, nil)
		n, more := v.N, !v.End
		if more { // of a full buffer nothing more is read
			n, more = w.fill(d, v.FD, n)
		}
		w.buffer(d, v.FD, n, more)
	}
	w.visited = w.cache.releaseOpen(d) // inside the next visit's pair of calls to the scheduler
	return true
}

// closeVisited closes what the last visit left open.
func (w *worker) closeVisited() {
	if w.visited >= 0 {
		sys.Close(w.visited)
		w.visited = -1
	}
}

// open opens the directory t of parent, or returns -1 and what became of t.
func (w *worker) open(parent *directory, t xattrio.Target) (fd int, o Outcome) {
	l := &w.labels
	for try := 0; ; try++ {
		w.pos.now(l.opens())
		fd, op, e := w.mount.OpenDir(t.FD, t.Name)
		if e == 0 {
			return fd, 0
		}
		e = xattrio.Absent(t.FD, e)
		verdict, another := xattrio.VerdictOf(e), false
		switch verdict {
		case xattrio.Gone:
			return -1, Vanished
		case xattrio.Mounted:
			if why, is := w.mount.InTheWay(t.FD, t.Name); is {
				return -1, l.skip(parent, t, why)
			}
		case xattrio.Changed:
			st, unread := t.Stat()
			another = unread == 0 && st.Kind != sys.KindDir
			e = syscall.ELOOP // it is swapped faster than it can be opened
		}
		if !another && (verdict == xattrio.Mounted || verdict == xattrio.Changed || verdict == xattrio.Again) && l.again(try) {
			continue
		}
		if op, e := l.io.Enter(t.FD); e != 0 {
			return -1, l.fail(parent, t, op, e)
		}
		if another {
			t.Kind = sys.KindUnknown
			return -1, l.label(t, parent)
		}
		// It may be given its label all the same. That what is in it could not
		// be read is a failure either way, and reported once.
		l.attempt(t, parent, nil)
		return -1, l.fail(parent, t, op, e)
	}
}
