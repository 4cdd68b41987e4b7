// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/fastlabel/fastlabel/relabel/internal/mounts"
	"github.com/fastlabel/fastlabel/relabel/internal/policy"
	"github.com/fastlabel/fastlabel/relabel/internal/sys"
	"github.com/fastlabel/fastlabel/relabel/internal/xattrio"
	"github.com/fastlabel/fastlabel/relabel/undo"
)

// label makes t have the label, and reports what stood in the way. d is the
// directory that t is in or, where t has no name, t itself.
func (w *worker) label(t xattrio.Target, d *dir) outcome {
	o, op, e := w.attempt(t, d)
	return w.settle(t, d, o, op, e)
}

// settle is label after a first attempt that ended so.
func (w *worker) settle(t xattrio.Target, d *dir, o outcome, op string, e sys.Errno) outcome {
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
				return vanished
			}
		case xattrio.Foreign:
			if id := w.mountOver(t); id != w.m.Stat.Mount {
				return w.mountedOver(d, t, id)
			}
			if try < tries && !w.stopped() {
				continue
			}
		case xattrio.Again:
			if try < tries && !w.stopped() {
				if !w.cache.shed() {
					pause(try)
				}
				continue
			}
		case xattrio.Compare:
			if w.frozen(t, e) {
				return w.leaveFrozen(t, d)
			}
		case xattrio.Refused:
			w.halt(fmt.Errorf("the kernel refuses the label %s: %w", w.want, pathError(op, d.path(t.String()), e)))
		}
		return w.fail(d, t, op, e)
	}
}

// attempt is label once: read, compare, write.
func (w *worker) attempt(t xattrio.Target, d *dir) (outcome, string, sys.Errno) {
	if w.io.Way == xattrio.ByDescriptor {
		w.now(w.opens())
	}
	if op, e := w.io.Hold(t); e != 0 {
		return failure, op, e
	}
	defer w.io.Release(t)
	unread := w.guess() || w.journaled && w.trace.Change == nil // it is on record
	from := ""
	var was undo.Former
	if !unread {
		w.now(w.io.Reads(t))
		has, op, e := w.io.Read(t)
		if e != 0 {
			return failure, op, e
		}
		if has.Is(w.want) {
			w.wrongStreak = 0
			return right, "", 0
		}
		if w.trace.Change != nil {
			from = has.String()
		}
		if w.keeps() {
			if was, e = bore(has); e != 0 {
				return failure, op, e
			}
		}
		w.wrongStreak++
	}
	if w.o.HardLinks != LinksLabel {
		if o, op, e := w.linked(t, d); o != written {
			return o, op, e
		}
	}
	if w.keeps() {
		w.put(d, t, was)
		return elsewhere, "", 0 // counted when it is written
	}
	if w.o.inner.check {
		if w.m.Subvolumes && t.Name == nil && w.frozen(t, syscall.EROFS) {
			return failure, w.io.Writes(t).String(), syscall.EROFS
		}
		w.change(d, t, from)
		return written, "", 0
	}
	w.now(w.io.Writes(t))
	op, e := w.io.Write(t)
	if e == 0 {
		w.change(d, t, from)
		return written, "", 0
	}
	if unread && w.refusedButRight(t, e) {
		return right, "", 0
	}
	return failure, op, e
}

// frozen says whether t, whose write was answered by e, cannot be written because
// it lies in a read-only subvolume of btrfs, other than that of the mount's top.
func (w *worker) frozen(t xattrio.Target, e sys.Errno) bool {
	if e != syscall.EROFS || t.Pinned {
		return false
	}
	id, readOnly, e := sys.Subvolume(t.FD)
	if e != 0 || !readOnly {
		return false
	}
	top, _, e := sys.Subvolume(int(w.m.top.fd))
	return e == 0 && id != top
}

// leaveFrozen names what lies in a read-only subvolume: as a rule that itself, and
// what is in it is not looked at then. It was named when the root was read first.
func (w *worker) leaveFrozen(t xattrio.Target, d *dir) outcome {
	if t.Name != nil || !d.parent.rereading {
		w.skip(d.path(t.String()), readOnlySubvolume)
	}
	return skipped
}

// refusedButRight looks whether the target, whose write was answered by e, is
// right as it is.
func (w *worker) refusedButRight(t xattrio.Target, e sys.Errno) bool {
	if xattrio.Judge(e) != xattrio.Compare {
		return false
	}
	if has, _, e := w.io.Read(t); e != 0 || !has.Is(w.want) {
		return false
	}
	w.wrongStreak = 0
	return true
}

// linked deals with what has several names, where the caller does not want it
// labelled. It is asked only of what is about to be written, which is pinned.
func (w *worker) linked(t xattrio.Target, d *dir) (outcome, string, sys.Errno) {
	if t.Name == nil && !t.Pinned {
		return written, "", 0 // a directory
	}
	st, e := w.io.Stat(t)
	switch {
	case e != 0:
		return failure, "statx", e
	case st.Kind == sys.KindDir || st.Links < 2:
		return written, "", 0
	case w.o.HardLinks == LinksSkip:
		return w.leave(d, t, fmt.Sprintf("it has %d names (hard links)", st.Links)), "", 0
	}
	w.reportFailure(d.path(t.String()), "relabel", ErrHardLinks)
	return failure, "", 0
}

// guess says whether to write without reading first (contract point 4).
func (w *worker) guess() bool {
	if !w.guesses || w.wrongStreak < guessAfter {
		return false
	}
	w.sinceGuess++
	return w.sinceGuess%guessCheck != 0
}

// mountedOver deals with an entry over which something is mounted, which is
// seen where there is no clone. A mount that was there at the start is walked
// on its own.
func (w *worker) mountedOver(d *dir, t xattrio.Target, id uint64) outcome {
	why := "a filesystem was mounted over it during the run"
	if w.proc.ByID(id) != nil {
		if !w.o.OneFilesystem {
			return elsewhere
		}
		why = mounts.OtherFilesystem
	}
	return w.leave(d, t, why)
}

// mountOver is the mount that the name t leads to; 0 if that is not known. It is
// w's own if what was mounted over t is gone again.
func (w *worker) mountOver(t xattrio.Target) uint64 {
	fd, e := sys.Openat(t.FD, t.Name, sys.OpenPath, 0)
	if e != 0 {
		return 0
	}
	defer sys.Close(fd)
	id, e := w.proc.MountOf(fd)
	if e != 0 {
		return 0
	}
	return id
}

// leave counts and names an entry that is left alone; on the second reading of
// the root it was, when it was read first.
func (w *worker) leave(d *dir, t xattrio.Target, why string) outcome {
	if d.rereading {
		return elsewhere
	}
	w.skip(d.path(t.String()), why)
	return skipped
}

// fail reports what stood in t's way. Many EIOs in a row end the run.
func (w *worker) fail(d *dir, t xattrio.Target, op string, e sys.Errno) outcome {
	w.reportFailure(d.path(t.String()), op, w.explain(t, op, e))
	w.sicken(op, e)
	return failure
}

// explain gives e with its reason, if op set the label of t and was refused.
func (w *worker) explain(t xattrio.Target, op string, e sys.Errno) error {
	if e != syscall.EACCES && e != syscall.EPERM || op != w.io.Writes(t).String() {
		return e
	}
	w.now(xattrio.Statx)
	st, errno := t.Stat()
	if errno != 0 {
		return e
	}
	if err := policy.Locked(st, e); err != nil {
		return err
	}
	if !w.proc.SELinux {
		return e
	}
	// The whole label, for which the worker's own may not have room.
	io := w.io
	io.Attr = sys.NewAttr(xattrio.Attribute, nil)
	w.now(io.Reads(t))
	if _, errno := io.Hold(t); errno != 0 {
		return e
	}
	defer io.Release(t)
	has, _, errno := io.Read(t)
	if errno != 0 {
		return e
	}
	return w.policy.Denial(has.String(), w.want, st.Kind, e)
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
// already: it becomes a failure, once, whoever of the workers met it.
func (w *worker) spoil(d *dir, op string, err error) {
	w.events.Lock()
	first := !d.spoiled
	d.spoiled = true
	w.events.Unlock()
	switch {
	case first && d.outcome == elsewhere:
		w.tally.count(failure)
	case first:
		w.tally.of[d.outcome]--
		w.tally.of[failure]++
	}
	w.reportFailure(d.path(""), op, err)
	var e sys.Errno
	if errors.As(err, &e) {
		w.sicken(op, e)
	}
}
