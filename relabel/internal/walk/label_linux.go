// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"bytes"
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
	for try := 0; e != 0; try++ {
		verdict := xattrio.Judge(e)
		switch {
		case verdict == xattrio.Gone && t.Name != nil:
			if e = xattrio.Absent(t.FD, e); xattrio.Judge(e) == xattrio.Gone {
				return Vanished
			}
		case verdict == xattrio.Foreign:
			if why, is := w.m.Foreign(t.FD, t.Name); is {
				return w.leave(d, t, why)
			}
		case verdict == xattrio.Compare && op == w.io.Writes(t).String() && w.isRight(t, w.writing):
			w.wrongStreak, w.eios = 0, 0
			return Right
		case e == syscall.EROFS && !t.Pinned && w.m.Frozen(t.FD): // a read-only subvolume: what is in it is too
			d.frozen = t.Name == nil
			if t.Name != nil || !d.parent.rereading { // else it was named when the root was read first
				w.skipped(d, t, mounts.ReadOnlySubvolume)
			}
			return Skipped
		case verdict == xattrio.Refused && !w.chooses(w.Top): // else another entry may get a label that it takes
			w.halt(fmt.Errorf("the kernel refuses the label %s: %w", w.writing, &fs.PathError{Op: op, Path: d.Path(t.String()), Err: e}))
		}
		if verdict != xattrio.Foreign && verdict != xattrio.Again || !w.retry(try) {
			return w.fail(d, t, op, e)
		}
		o, op, e = w.attempt(t, d)
	}
	w.eios = 0
	return o
}

// attempt is label once: read, compare, write.
func (w *worker) attempt(t xattrio.Target, d *Dir) (Outcome, string, sys.Errno) {
	if w.io.Way == sys.ByDescriptor {
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
		return w.overwrite(t, d, xattrio.Label{})
	}
	w.now(w.io.Reads(t))
	has, op, e := w.io.Read(t)
	if e != 0 {
		return Failed, op, e
	}
	return w.replace(t, d, has, label)
}

// wanted is the label that t is to have. If that is "", the rest says what became of t.
func (w *worker) wanted(t xattrio.Target, d *Dir) (label string, o Outcome, op string, e sys.Errno) {
	switch {
	case t.Name == nil:
		return d.own, Skipped, "", 0
	case d.want.Rules == nil:
		return d.want.Label, Skipped, "", 0
	case t.Kind == sys.KindUnknown:
		st, e := w.io.Stat(t)
		if e != 0 {
			return "", Failed, xattrio.Statx.String(), e
		}
		t.Kind = st.Kind
	}
	label, err := d.want.Rules.Entry([]byte(t.String()), t.Kind)
	if err != nil {
		return "", w.failed(d, t, "relabel", err), "", 0
	}
	return label, Skipped, "", 0
}

// chooses says that the name or the label of an entry decides what is written.
func (w *worker) chooses(want *Want) bool {
	return want.Rules != nil || w.Change != nil || want.Label == ""
}

// choice is what becomes of an entry.
type choice struct {
	outcome Outcome
	to      string // what is written or, where the entry is skipped, why
	err     error  // of one that failed
}

// choose says what becomes of an entry that has a label and is to have another.
func (w *worker) choose(label string, has xattrio.Label) choice {
	switch {
	case label == "":
		return choice{outcome: Skipped}
	case has.Is(label):
		return choice{outcome: Right}
	case w.Change == nil:
		return choice{outcome: Written, to: label}
	}
	stored, l := bytes.TrimSuffix(has.Stored, []byte{0}), &w.known
	if l.want != label || l.has != string(stored) {
		l.has, l.want = string(stored), label
		l.to, l.outcome, l.err = w.Change(l.has, label)
	}
	return l.choice
}

// unwritten reports why t is not written, and returns what it counts as.
func (w *worker) unwritten(d *Dir, t xattrio.Target, c choice) Outcome {
	switch {
	case c.outcome == Failed:
		w.failed(d, t, "relabel", c.err)
	case c.outcome == Skipped && c.to != "" && w.Events.Changed != nil:
		w.skipped(d, t, c.to)
	}
	return c.outcome
}

// replace is attempt where t was read, and label is wanted.
func (w *worker) replace(t xattrio.Target, d *Dir, has xattrio.Label, label string) (Outcome, string, sys.Errno) {
	c := w.choose(label, has)
	if c.outcome == Right {
		w.wrongStreak = 0
		return Right, "", 0
	}
	w.wrongStreak++
	if c.outcome != Written {
		return w.unwritten(d, t, c), "", 0
	}
	w.ready(c.to)
	return w.overwrite(t, d, has)
}

// overwrite is attempt where t is to be written, over the label has.
func (w *worker) overwrite(t xattrio.Target, d *Dir, has xattrio.Label) (Outcome, string, sys.Errno) {
	if w.HardLinks != LinksLabel && (t.Name != nil || t.Pinned) { // all but an open directory: it is pinned
		switch st, e := w.io.Stat(t); {
		case e != 0:
			return Failed, xattrio.Statx.String(), e
		case st.Kind == sys.KindDir || st.Links < 2:
		case w.HardLinks == LinksSkip:
			w.skipped(d, t, fmt.Sprintf("it has %d names (hard links)", st.Links))
			return Skipped, "", 0
		default:
			return w.failed(d, t, "relabel", ErrHardLinks), "", 0
		}
	}
	if w.Writes == DryRun {
		if w.m.Kind == sys.Btrfs && t.Name == nil && !t.Pinned && w.m.Frozen(t.FD) {
			return Failed, w.io.Writes(t).String(), syscall.EROFS
		}
		w.changed(d, t, has)
		return Written, "", 0
	}
	w.now(w.io.Writes(t))
	op, e := w.io.Write(t)
	if e != 0 {
		return Failed, op, e
	}
	w.changed(d, t, has)
	return Written, "", 0
}

// isRight reports whether t has the label by now.
func (w *worker) isRight(t xattrio.Target, label string) bool {
	if _, e := w.io.Hold(t); e != 0 {
		return false
	}
	defer w.io.Release(t)
	has, _, e := w.io.Read(t)
	return e == 0 && has.Is(label)
}

// guess says whether to write without reading first (contract point 4).
func (w *worker) guess() bool {
	if w.Writes != Guess || w.wrongStreak < guessAfter {
		return false
	}
	w.sinceGuess++
	return w.sinceGuess%guessCheck != 0
}

// leave skips t, with all that is mounted in it. Without a reason t is where a mount was at
// the start, which is walked on its own. A small tree leaves it to the pool, which knows the
// mounts.
func (w *worker) leave(d *Dir, t xattrio.Target, why string) Outcome {
	switch {
	case w.solo != nil && !d.rereading:
		w.otherMount(d, t)
		return Elsewhere
	case why == "":
		return Elsewhere
	}
	w.skipped(d, t, why)
	return Skipped
}

// fail reports what stood in t's way.
func (w *worker) fail(d *Dir, t xattrio.Target, op string, e sys.Errno) Outcome {
	err := error(e)
	if op == w.io.Writes(t).String() && (e == syscall.EACCES || e == syscall.EPERM) {
		err = w.Policy.Why(w.io, t, w.writing, e, w.now)
	}
	return w.failed(d, t, op, err)
}

// failed, skipped and changed tell the caller. They are in no call during that. Many EIOs
// in a row end the run.
func (w *worker) failed(d *Dir, t xattrio.Target, op string, err error) Outcome {
	w.unwatched(func() { w.Events.Failed(d.Path(t.String()), op, err) })
	var e sys.Errno
	if errors.As(err, &e) && xattrio.Judge(e) == xattrio.Sick {
		if w.eios++; w.eios == sickAfter {
			w.halt(fmt.Errorf("%d errors in a row: %s: %w; the disk seems to be failing", sickAfter, op, e))
		}
	}
	return Failed
}

func (w *worker) skipped(d *Dir, t xattrio.Target, why string) {
	if w.Events.Left != nil && !d.rereading { // else it was told when it was read first
		w.unwatched(func() { w.Events.Left(d.Path(t.String()), why) })
	}
}

func (w *worker) changed(d *Dir, t xattrio.Target, has xattrio.Label) {
	if w.Events.Changed != nil {
		w.unwatched(func() { w.Events.Changed(d.Path(t.String()), has.String(), w.writing) })
	}
}

// spoil reports that d's entries could not all be read. d has an outcome
// already: it becomes a failure, once, whichever worker met it.
func (w *worker) spoil(d *Dir, op string, err error) {
	w.cache.mu.Lock()
	fresh := !d.spoiled
	d.spoiled = true
	w.cache.mu.Unlock()
	if fresh {
		w.tally.Count(d.outcome, -1)
		w.tally.Count(Failed, 1)
	}
	w.failed(d, xattrio.Target{}, op, err)
}
