// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"syscall"

	"github.com/fastlabel/fastlabel/relabel/internal/mounts"
	"github.com/fastlabel/fastlabel/relabel/internal/sys"
	"github.com/fastlabel/fastlabel/relabel/internal/xattrio"
)

// openDirs are directories that a worker keeps open from one item to the next.
type openDirs struct {
	held      heldDir
	closeNext int // a directory to close, or -1
}

// enter labels the directory name in parent and starts on its entries. The
// label comes first: what is created in it from then on inherits.
func (w *worker) enter(parent *Dir, name string) {
	t := xattrio.Target{Name: sys.Cname(name[:len(name)-1]), Kind: sys.KindDir}
	w.at(parent, t.Name)
	want := parent.want
	label := want.Label
	if want.Rules != nil {
		bare := []byte(name[:len(name)-1])
		label, _ = want.Rules.Entry(bare, sys.KindDir) // an error is met again where it is told
		want = want.Rules.Beneath(bare)
	}
	w.now(w.opens())
	at, op, e := w.held.acquire(&w.cache, parent)
	switch {
	case xattrio.Judge(e) == xattrio.Gone:
		w.tally.Count(Vanished)
		return
	case e != 0:
		w.tally.Count(w.fail(parent, t, op, e))
		return
	}
	t.FD = at
	if w.m.Confined == mounts.Clone && w.sweeps() && !w.readsAhead() && label != "" && len(w.m.Left) == 0 {
		w.visit(parent, t, name, want, label)
		return
	}
	w.closeVisited()
	fd, op, e := w.open(t)
	w.opened(parent, t, name, want, fd, op, e)
}

// opened continues with the directory t, whose opening ended so.
func (w *worker) opened(parent *Dir, t xattrio.Target, name string, want *Want, fd int, op string, e sys.Errno) {
	switch {
	case e == syscall.ENOTDIR:
		w.tally.Count(w.leaf(parent, t))
		return
	case e != 0:
		w.tally.Count(w.closed(parent, t, op, e))
		return
	}
	if o, is := w.left(xattrio.Target{FD: fd}, parent, t); is {
		sys.Close(fd)
		w.tally.Count(o)
		return
	}
	d := w.cache.opened(parent, name, fd, want)
	w.judged(d, w.label(xattrio.Target{FD: fd}, d))
	if !d.closed() {
		w.scan(d, fd)
	}
	w.cache.release(d)
}

// judged notes what became of the directory's own label.
func (w *worker) judged(d *Dir, o Outcome) {
	if d.outcome = o; o == Failed {
		w.cache.spoil(d)
	}
	if o != Skipped || !d.parent.rereading { // else it was counted when it was read first
		w.tally.Count(o)
	}
}

// visit opens the directory t, labels it and reads its first records in one go,
// where nothing else is to be asked of it.
func (w *worker) visit(parent *Dir, t xattrio.Target, name string, want *Want, label string) {
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
	switch {
	case v.Errno == syscall.EPERM && v.Step == sys.StepOpen:
		fd, op, e := w.open(t) // its access time is its owner's to leave alone
		w.opened(parent, t, name, want, fd, op, e)
		return
	case v.FD < 0:
		fd, op, e := w.reopen(t, v.FD, "openat", v.Errno)
		w.opened(parent, t, name, want, fd, op, e)
		return
	}
	d := w.cache.opened(parent, name, v.FD, want)
	if !unread && v.Wrong {
		w.wrongStreak++
	} else if !unread && v.Step > sys.StepRead {
		w.wrongStreak = 0
	}
	self := xattrio.Target{FD: v.FD}
	switch v.Step {
	case sys.StepRead:
		o, op := Failed, xattrio.Fgetxattr.String()
		has, e := w.io.Found(v.N, v.Errno)
		if e == 0 { // it has another label
			o, op, e = w.replace(self, d, has, label)
		}
		w.judged(d, w.settle(self, d, o, op, e))
		if !d.closed() {
			w.scan(d, v.FD)
		}
	case sys.StepWrite:
		o, e := Failed, v.Errno
		if unread && w.refusedButRight(self, e) {
			o, e = Right, 0
		}
		if w.judged(d, w.settle(self, d, o, xattrio.Fsetxattr.String(), e)); !d.closed() {
			w.scan(d, v.FD)
		}
	default:
		w.eios = 0
		o := Right
		if v.Written {
			o = Written
		}
		w.judged(d, o)
		w.at(d, nil)
		n, more := v.N, !v.End
		if v.Errno != 0 || more && n == 0 {
			n, more = w.refill(d, v.FD, n, v.Errno, nil)
		}
		w.share(d, v.FD, n, more)
	}
	w.closeNext = w.cache.releaseOpen(d) // inside the next visit's pair of calls to the scheduler
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
	w.now(w.opens())
	fd, op, e = w.m.OpenDir(t.FD, t.Name)
	return w.reopen(t, fd, op, e)
}

// reopen is open after a first attempt that ended so.
func (w *worker) reopen(t xattrio.Target, fd int, op string, e sys.Errno) (int, string, sys.Errno) {
	w.now(w.opens())
	for try := 0; ; try++ {
		if try > 0 {
			fd, op, e = w.m.OpenDir(t.FD, t.Name)
		}
		v := xattrio.Judge(e)
		if v == xattrio.Changed {
			if st, e := t.Stat(); e == 0 && st.Kind != sys.KindDir {
				return -1, op, syscall.ENOTDIR
			}
			e = syscall.ELOOP
		}
		bare := v == xattrio.Foreign && w.m.Over(t.FD, t.Name) == w.m.Stat.Mount
		if v != xattrio.Again && v != xattrio.Changed && !bare || try == tries || w.stopped() {
			return fd, op, e
		}
		if !w.cache.closeIdle() {
			pause(try)
		}
	}
}

// closed handles a directory that could not be opened.
func (w *worker) closed(parent *Dir, t xattrio.Target, op string, e sys.Errno) Outcome {
	e = xattrio.Absent(t.FD, e)
	switch xattrio.Judge(e) {
	case xattrio.Gone:
		if parent.rereading {
			return Elsewhere // counted when it was read first, if it was
		}
		return Vanished
	case xattrio.Foreign:
		if id := w.m.Over(t.FD, t.Name); id != w.m.Stat.Mount {
			if w.solo != nil && !parent.rereading {
				w.otherMount(parent, t)
				return Elsewhere
			}
			return w.leave(parent, t, w.m.Elsewhere(id))
		}
	}
	// It may be given its label all the same. That what is in it could not
	// be read is a failure either way, and reported once.
	if _, e := w.io.Enter(t.FD); e == 0 {
		w.attempt(t, parent)
	}
	return w.fail(parent, t, op, e)
}

// leaf labels t, whatever it has become, without looking beneath it.
func (w *worker) leaf(parent *Dir, t xattrio.Target) Outcome {
	if op, e := w.io.Enter(t.FD); e != 0 {
		return w.fail(parent, t, op, e)
	}
	return w.label(t, parent)
}
