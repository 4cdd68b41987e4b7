// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"github.com/fastlabel/fastlabel/relabel/internal/mounts"
	"github.com/fastlabel/fastlabel/relabel/internal/sys"
	"github.com/fastlabel/fastlabel/relabel/internal/xattrio"
)

// label makes t have the label, and reports what stood in the way. d is the
// directory that t is in or, where t has no name, t itself.
func (w *worker) label(t xattrio.Target, d *Dir) Outcome {
	o, op, e := w.attempt(t, d)
	return w.settle(t, d, o, op, e)
}

// settle is label after a first attempt that ended so.
func (w *worker) settle(t xattrio.Target, d *Dir, o Outcome, op string, e sys.Errno) Outcome {
	for try := 0; ; try++ {
		if try > 0 {
			o, op, e = w.attempt(t, d)
		}
		if e == 0 {
			w.eios = 0
			return o
		}
		switch xattrio.Judge(e) {
		case xattrio.Gone:
			if t.Name == nil {
				break
			}
			if e = xattrio.Absent(t.FD, e); xattrio.Judge(e) == xattrio.Gone {
				return Vanished
			}
		case xattrio.Foreign:
			if id := w.m.Over(t.FD, t.Name); id != w.m.Stat.Mount {
				if w.solo != nil && !d.rereading {
					w.otherMount(d, t)
					return Elsewhere
				}
				return w.leave(d, t, w.m.Elsewhere(id))
			}
			if try < tries && !w.stopped() {
				continue
			}
		case xattrio.Again:
			if try < tries && !w.stopped() {
				if !w.cache.closeIdle() {
					pause(try)
				}
				continue
			}
		case xattrio.Compare:
			if w.frozen(t, e) {
				return w.leaveFrozen(t, d)
			}
		case xattrio.Refused:
			if !w.chooses(w.Top) { // else another entry may get a label that it takes
				w.halt(fmt.Errorf("the kernel refuses the label %s: %w", w.writing, &fs.PathError{Op: op, Path: d.Path(t.String()), Err: e}))
			}
		}
		return w.fail(d, t, op, e)
	}
}

// attempt is label once: read, compare, write.
func (w *worker) attempt(t xattrio.Target, d *Dir) (Outcome, string, sys.Errno) {
	if w.io.Way == xattrio.ByDescriptor {
		w.now(w.opens())
	}
	if op, e := w.io.Hold(t); e != 0 {
		return Failed, op, e
	}
	defer w.io.Release(t)
	label, o, op, e := w.wanted(t, d)
	if label == "" {
		return o, op, e
	}
	w.ready(label)
	if w.guess() {
		return w.overwrite(t, d, "", true)
	}
	w.now(w.io.Reads(t))
	has, op, e := w.io.Read(t)
	if e != 0 {
		return Failed, op, e
	}
	return w.replace(t, d, has, label)
}

// replace is attempt where t was read, and label is wanted.
func (w *worker) replace(t xattrio.Target, d *Dir, has xattrio.Label, label string) (Outcome, string, sys.Errno) {
	if has.Is(label) {
		w.wrongStreak = 0
		return Right, "", 0
	}
	from := ""
	if w.Events.Changed != nil {
		from = has.String()
	}
	w.wrongStreak++
	if w.Change != nil {
		to, o := w.change(t, d, has.String(), label)
		if o != Written {
			return o, "", 0
		}
		w.ready(to)
	}
	return w.overwrite(t, d, from, false)
}

// overwrite is attempt where t is to be written, over the label from or, unread, over any.
func (w *worker) overwrite(t xattrio.Target, d *Dir, from string, unread bool) (Outcome, string, sys.Errno) {
	if w.HardLinks != LinksLabel {
		if o, op, e := w.linked(t, d); o != Written {
			return o, op, e
		}
	}
	if w.Writes == DryRun {
		if w.m.Subvolumes && t.Name == nil && w.frozen(t, syscall.EROFS) {
			return Failed, w.io.Writes(t).String(), syscall.EROFS
		}
		w.changed(d, t, from)
		return Written, "", 0
	}
	w.now(w.io.Writes(t))
	op, e := w.io.Write(t)
	if e == 0 {
		w.changed(d, t, from)
		return Written, "", 0
	}
	if unread && w.refusedButRight(t, e) {
		return Right, "", 0
	}
	return Failed, op, e
}

// frozen says whether t, whose write was answered by e, cannot be written because
// it lies in a read-only subvolume.
func (w *worker) frozen(t xattrio.Target, e sys.Errno) bool {
	return e == syscall.EROFS && !t.Pinned && w.m.Frozen(t.FD)
}

// leaveFrozen names what lies in a read-only subvolume: as a rule that itself, and
// what is in it is not looked at then. It was named when the root was read first.
func (w *worker) leaveFrozen(t xattrio.Target, d *Dir) Outcome {
	if t.Name != nil || !d.parent.rereading {
		w.skipped(d.Path(t.String()), mounts.ReadOnlySubvolume)
	}
	return Skipped
}

// refusedButRight looks whether the target, whose write was answered by e, is
// right as it is.
func (w *worker) refusedButRight(t xattrio.Target, e sys.Errno) bool {
	if xattrio.Judge(e) != xattrio.Compare {
		return false
	}
	if has, _, e := w.io.Read(t); e != 0 || !has.Is(w.writing) {
		return false
	}
	w.wrongStreak = 0
	return true
}

// linked deals with what has several names, where the caller does not want it
// labelled. It is asked only of what is about to be written, which is pinned.
func (w *worker) linked(t xattrio.Target, d *Dir) (Outcome, string, sys.Errno) {
	if t.Name == nil && !t.Pinned {
		return Written, "", 0 // a directory
	}
	st, e := w.io.Stat(t)
	switch {
	case e != 0:
		return Failed, "statx", e
	case st.Kind == sys.KindDir || st.Links < 2:
		return Written, "", 0
	case w.HardLinks == LinksSkip:
		return w.leave(d, t, fmt.Sprintf("it has %d names (hard links)", st.Links)), "", 0
	}
	w.failed(d.Path(t.String()), "relabel", ErrHardLinks)
	return Failed, "", 0
}

// guess says whether to write without reading first (contract point 4).
func (w *worker) guess() bool {
	if w.Writes != Guess || w.wrongStreak < guessAfter {
		return false
	}
	w.sinceGuess++
	return w.sinceGuess%guessCheck != 0
}

// leave counts and names an entry that is left alone. On the second reading of the root
// it was, when it was read first; and without a reason it is where a mount was at the
// start, which is walked on its own.
func (w *worker) leave(d *Dir, t xattrio.Target, why string) Outcome {
	if why == "" || d.rereading {
		return Elsewhere
	}
	w.skipped(d.Path(t.String()), why)
	return Skipped
}

// fail reports what stood in t's way. Many EIOs in a row end the run.
func (w *worker) fail(d *Dir, t xattrio.Target, op string, e sys.Errno) Outcome {
	err := error(e)
	if op == w.io.Writes(t).String() && (e == syscall.EACCES || e == syscall.EPERM) {
		err = w.Policy.Why(w.io, t, w.writing, e, w.now)
	}
	w.failed(d.Path(t.String()), op, err)
	w.sicken(op, e)
	return Failed
}

// failed, left and changed tell the caller. They are in no call during that.
func (w *worker) failed(path, op string, err error) {
	w.unwatched(func() { w.Events.Failed(path, op, err) })
}

func (w *worker) skipped(path, why string) {
	if w.Events.Left != nil {
		w.unwatched(func() { w.Events.Left(path, why) })
	}
}

func (w *worker) changed(d *Dir, t xattrio.Target, from string) {
	if w.Events.Changed != nil {
		w.unwatched(func() { w.Events.Changed(d.Path(t.String()), from, w.writing) })
	}
}

func (w *worker) sicken(op string, e sys.Errno) {
	if xattrio.Judge(e) != xattrio.Sick {
		return
	}
	if w.eios++; w.eios == sickAfter {
		w.halt(fmt.Errorf("%d errors in a row: %s: %w; the disk seems to be failing", sickAfter, op, e))
	}
}

// spoil reports that d's entries could not all be read. d has an outcome
// already: it becomes a failure, once, whichever worker met it.
func (w *worker) spoil(d *Dir, op string, err error) {
	first := w.cache.spoil(d)
	switch {
	case first && d.outcome == Elsewhere:
		w.tally.Count(Failed)
	case first:
		w.tally.Of[d.outcome]--
		w.tally.Of[Failed]++
	}
	w.failed(d.Path(""), op, err)
	var e sys.Errno
	if errors.As(err, &e) {
		w.sicken(op, e)
	}
}
