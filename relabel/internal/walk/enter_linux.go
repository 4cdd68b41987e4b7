// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"syscall"

	"github.com/fastlabel/fastlabel/relabel/internal/mounts"
	"github.com/fastlabel/fastlabel/relabel/internal/sys"
	"github.com/fastlabel/fastlabel/relabel/internal/xattrio"
)

// enter labels the directory name in parent and starts on its entries. The
// label comes first: what is created in it from then on inherits.
func (w *worker) enter(parent *Dir, name string) {
	w.tally.Entered++
	t := xattrio.Target{Name: sys.Cname(name), Kind: sys.KindDir}
	w.at(parent, t.Name)
	want, label, err := parent.want, parent.want.Label, error(nil)
	if want.Rules != nil {
		bare := []byte(name[:len(name)-1])
		label, err = want.Rules.Entry(bare, sys.KindDir)
		want = want.Rules.Beneath(bare)
	}
	w.now(w.opens())
	at, op, e := w.held.acquire(&w.cache, parent)
	switch {
	case xattrio.Judge(e) == xattrio.Gone:
		w.count(parent, Vanished, 1)
		return
	case e != 0:
		w.count(parent, w.fail(parent, t, op, e), 1)
		return
	}
	t.FD = at
	plain := w.m.Confined == mounts.Clone && w.sweeps(want) && !w.readsAhead() && label != "" && err == nil && len(w.m.Left) == 0
	if plain && w.visit(parent, t, name, want, label) {
		return
	}
	w.closeVisited()
	fd, op, e := w.open(t)
	if e != 0 {
		w.count(parent, w.unopened(parent, t, op, e), 1)
		return
	}
	if o, is := w.left(xattrio.Target{FD: fd}, parent, t); is {
		sys.Close(fd)
		w.count(parent, o, 1)
		return
	}
	d := w.cache.opened(parent, name, fd, label, want)
	if err != nil {
		w.judged(d, w.failed(d, xattrio.Target{}, "relabel", err))
	} else {
		w.judged(d, w.label(xattrio.Target{FD: fd}, d))
	}
	if !d.frozen {
		w.scan(d, fd)
	}
	w.cache.release(d)
}

// judged notes what became of the directory's own label.
func (w *worker) judged(d *Dir, o Outcome) {
	if d.outcome = o; o == Failed {
		d.spoiled = true // nobody else knows of d
	}
	w.count(d.parent, o, 1)
}

// visit opens the directory t, labels it and reads its first records in one go,
// where nothing else is to be asked of it. It reports whether it could be opened so.
func (w *worker) visit(parent *Dir, t xattrio.Target, name string, want *Want, label string) bool {
	w.ready(label)
	unread := w.guess()
	how := sys.ReadFirst
	switch {
	case unread:
		how = sys.Unread
	case w.Change != nil || w.Writes == DryRun:
		how = sys.ReadOnly
	}
	w.now(xattrio.Visit)
	v := w.io.Visit(w.closeNext, t.FD, t.Name, sys.OpenDir|sys.NoAtime, how, w.buf, &w.step)
	w.closeNext = -1
	if v.FD < 0 {
		return false
	}
	d := w.cache.opened(parent, name, v.FD, label, want)
	self := xattrio.Target{FD: v.FD}
	o, op, e := Written, xattrio.Visits(v.Step).String(), v.Errno
	switch {
	case v.Step == sys.StepRead:
		var has xattrio.Label
		if has, e = w.io.Found(v.N, e); has.Long { // for a visit
			has, _, e = w.io.Read(self)
		}
		if e == 0 { // it has another label
			o, op, e = w.replace(self, d, has, label)
		}
	case v.Wrong && !unread:
		w.wrongStreak++
	case !v.Wrong:
		o, w.wrongStreak = Right, 0
	}
	if v.Step <= sys.StepWrite {
		if w.judged(d, w.settle(self, d, o, op, e)); !d.frozen {
			w.scan(d, v.FD)
		}
	} else {
		w.eios = 0
		w.judged(d, o)
		w.at(d, nil)
		n, more := v.N, !v.End
		if more { // of a full buffer nothing more is read
			n, more = w.fill(d, v.FD, n)
		}
		w.share(d, v.FD, n, more)
	}
	w.closeNext = w.cache.releaseOpen(d) // inside the next visit's pair of calls to the scheduler
	return true
}

// closeVisited closes what the last visit left open.
func (w *worker) closeVisited() {
	if w.closeNext >= 0 {
		sys.Close(w.closeNext)
		w.closeNext = -1
	}
}

// opens is the call by which an entry is opened.
func (w *worker) opens() xattrio.SyscallKind {
	if w.m.Confined == mounts.Resolve {
		return xattrio.Openat2
	}
	return xattrio.Openat
}

// open opens the directory t. ENOTDIR: no longer a directory. ELOOP: swapped faster
// than it can be opened.
func (w *worker) open(t xattrio.Target) (fd int, op string, e sys.Errno) {
	for try := 0; ; try++ {
		w.now(w.opens())
		fd, op, e = w.m.OpenDir(t.FD, t.Name)
		v := xattrio.Judge(e)
		if v == xattrio.Changed {
			if st, e := t.Stat(); e == 0 && st.Kind != sys.KindDir {
				return -1, op, syscall.ENOTDIR
			}
			e = syscall.ELOOP
		}
		if v == xattrio.Foreign {
			if _, is := w.m.Foreign(t.FD, t.Name); !is {
				v = xattrio.Again
			}
		}
		if v != xattrio.Again && v != xattrio.Changed || !w.retry(try) {
			return fd, op, e
		}
	}
}

// unopened handles a directory that could not be opened.
func (w *worker) unopened(parent *Dir, t xattrio.Target, op string, e sys.Errno) Outcome {
	e = xattrio.Absent(t.FD, e)
	switch xattrio.Judge(e) {
	case xattrio.Gone:
		return Vanished
	case xattrio.Foreign:
		if why, is := w.m.Foreign(t.FD, t.Name); is {
			return w.leave(parent, t, why)
		}
	}
	if op, e := w.io.Enter(t.FD); e != 0 {
		return w.fail(parent, t, op, e)
	}
	if e == syscall.ENOTDIR {
		t.Kind = sys.KindUnknown
		return w.label(t, parent)
	}
	// It may be given its label all the same. That what is in it could not
	// be read is a failure either way, and reported once.
	w.attempt(t, parent)
	return w.fail(parent, t, op, e)
}
