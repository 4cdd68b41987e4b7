// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"syscall"
	"time"

	"github.com/fastlabel/fastlabel/internal/mounts"
	"github.com/fastlabel/fastlabel/internal/sys"
	"github.com/fastlabel/fastlabel/internal/xattrio"
)

const (
	// guessAfter wrong labels in a row are taken to say that the rest is
	// wrong too: the walk then writes unread, but for one in guessCheck.
	// Together they limit the calls for an entry to 1.02.
	guessAfter = 32
	guessCheck = 64
	// tries bounds how often one call is tried again, a millisecond apart
	// at first and twice as long each time: about a quarter of a second.
	tries = 8
	// sickAfter EIOs in a row, with nothing that succeeded between, end the
	// run: reading the rest of a dying disk takes days and helps no one.
	sickAfter = 128
)

// labeller labels entries for one worker, and counts them.
type labeller struct {
	walk  *Walk
	queue queue // knows whether the run was stopped; nil for one entry
	pos   *position
	tally Tally
	io    xattrio.IO

	otherMount func(d *directory, t xattrio.Target) // has the pool label it; of a small tree alone

	wrong int        // labels in a row
	turn  int        // entries since the walk began to guess
	eios  int        // in a row
	found *sys.Found // what the row had, where that decides what is written
	known struct {   // what Change was asked last, and its answer
		has, want string
		choice
	}
}

// result is the end of an attempt to label an entry: an outcome, or the call that failed.
type result struct {
	outcome Outcome
	op      string
	e       sys.Errno
}

// label makes t have its label. d is the directory that t is in or, where t has no name, t itself.
func (l *labeller) label(t xattrio.Target, d *directory) Outcome {
	return l.finish(t, d, l.attempt(t, d, nil))
}

// finish is label after a first attempt that came to r.
func (l *labeller) finish(t xattrio.Target, d *directory, r result) Outcome {
	for try := 0; r.e != 0; try++ {
		verdict := xattrio.VerdictOf(r.e)
		switch {
		case verdict == xattrio.Gone && t.Name != nil:
			if r.e = xattrio.Absent(t.FD, r.e); xattrio.VerdictOf(r.e) == xattrio.Gone {
				return Vanished
			}
		case verdict == xattrio.Mounted:
			if why, is := l.walk.mount.InTheWay(t.FD, t.Name); is {
				return l.skip(d, t, why)
			}
		case verdict == xattrio.Compare && r.op == l.io.Writes(t).String() && l.io.Has(t, l.io.Label):
			l.wrong, l.eios = 0, 0
			return Right
		case r.e == syscall.EROFS && !t.Pinned && l.walk.mount.Frozen(t.FD): // a read-only subvolume: what is in it is too
			d.frozen = t.Name == nil
			return l.skipped(d, t, mounts.ReadOnlySubvolume)
		case verdict == xattrio.Unlabelable && !t.Pinned && l.isUnlabelable(t, d):
			return l.skipped(d, t, "it can have no label")
		case verdict == xattrio.Refused && !l.chooses(l.walk.job.Want): // else another entry may get a label that it takes
			l.halt(fmt.Errorf("the kernel refuses the label %s: %w", l.io.Label, &fs.PathError{Op: r.op, Path: d.Path(t.String()), Err: r.e}))
		}
		if verdict != xattrio.Mounted && verdict != xattrio.Again || !l.again(try) {
			return l.fail(d, t, r.op, r.e)
		}
		r = l.attempt(t, d, nil)
	}
	l.eios = 0
	return r.outcome
}

// attempt is label once. has is the label of t, if it was read.
func (l *labeller) attempt(t xattrio.Target, d *directory, has *xattrio.Label) (r result) {
	if l.io.Way == sys.ByDescriptor {
		l.pos.now(l.opens())
	}
	if op, e := l.io.Pin(t); e != 0 {
		return result{Failed, op, e}
	}
	defer l.io.Unpin(t)
	want, r := l.wanted(t, d)
	if want == "" {
		return r
	}
	l.io.SetLabel(want)
	var was xattrio.Label
	if has != nil {
		was = *has
	} else if !l.guess() {
		l.pos.now(l.io.Reads(t))
		if was, r.op, r.e = l.io.Read(t); r.e != 0 {
			return r
		}
	}
	to, r := l.decide(t, d, was, want)
	if to != "" {
		l.io.SetLabel(to)
		l.pos.now(l.io.Writes(t))
		r.op, r.e = l.io.Write(t)
	}
	if r.e == 0 && r.outcome == Written {
		l.changed(d, t, was)
	}
	return r
}

// wanted returns the label that t is to have or, where that is "", the result.
func (l *labeller) wanted(t xattrio.Target, d *directory) (label string, r result) {
	r.outcome = Skipped
	switch {
	case t.Name == nil:
		return d.own, r
	case d.want.Rules == nil:
		return d.want.Label, r
	case t.Kind == sys.KindUnknown:
		st, e := l.io.Stat(t)
		if e != 0 {
			return "", result{Failed, xattrio.Statx.String(), e}
		}
		t.Kind = st.Kind
	}
	label, err := d.want.Rules.Entry([]byte(t.String()), t.Kind)
	if err != nil {
		return "", result{outcome: l.failed(d, t, "relabel", err)}
	}
	return label, r
}

// chooses reports that the name or the label of an entry decides what is written.
func (l *labeller) chooses(want *Want) bool {
	return want.Rules != nil || l.walk.job.Change != nil || want.Label == ""
}

// choice is made for an entry whose label was read.
type choice struct {
	outcome Outcome
	to      string // what is written or, where the entry is skipped, why
	err     error  // of one that failed
}

// choose compares the label that an entry has with the one that it is to have.
func (l *labeller) choose(label string, has xattrio.Label) choice {
	switch {
	case label == "":
		return choice{outcome: Skipped}
	case has.Is(label):
		return choice{outcome: Right}
	case l.walk.job.Change == nil:
		return choice{outcome: Written, to: label}
	}
	stored, k := bytes.TrimSuffix(has, []byte{0}), &l.known
	if k.want != label || k.has != string(stored) {
		k.has, k.want = string(stored), label
		k.to, k.outcome, k.err = l.walk.job.Change(k.has, label)
	}
	return k.choice
}

// unwritten reports why t is not written, and returns what it counts as.
func (l *labeller) unwritten(d *directory, t xattrio.Target, c choice) Outcome {
	switch {
	case c.outcome == Failed:
		l.failed(d, t, "relabel", c.err)
	case c.outcome == Skipped && c.to != "" && l.walk.job.Events.Changed != nil:
		l.skipped(d, t, c.to)
	}
	return c.outcome
}

// decide returns what is written to t, which has the label has, and what becomes of t then.
func (l *labeller) decide(t xattrio.Target, d *directory, has xattrio.Label, want string) (to string, r result) {
	c := l.choose(want, has)
	if c.outcome == Right {
		l.wrong = 0
		return "", result{outcome: Right}
	}
	l.wrong++
	if c.outcome != Written {
		return "", result{outcome: l.unwritten(d, t, c)}
	}
	if how := l.walk.job.HardLinks; how != LinksLabel && (t.Name != nil || t.Pinned) { // all but an open directory: it is pinned
		switch st, e := l.io.Stat(t); {
		case e != 0:
			return "", result{Failed, xattrio.Statx.String(), e}
		case st.Kind == sys.KindDir || st.Links < 2:
		case how == LinksSkip:
			return "", result{outcome: l.skipped(d, t, fmt.Sprintf("it has %d names (hard links)", st.Links))}
		default:
			return "", result{outcome: l.failed(d, t, "relabel", ErrHardLinks)}
		}
	}
	if l.walk.job.Writes != DryRun {
		return c.to, result{outcome: Written}
	}
	l.io.SetLabel(c.to)
	if m := l.walk.mount; m.Kind == sys.Btrfs && t.Name == nil && !t.Pinned && m.Frozen(t.FD) {
		return "", result{Failed, l.io.Writes(t).String(), syscall.EROFS}
	}
	return "", result{outcome: Written}
}

// isUnlabelable reports whether t, which is not pinned, can have no label, by reading it and, where one
// is to be written, by writing it.
func (l *labeller) isUnlabelable(t xattrio.Target, d *directory) bool {
	if _, e := l.io.Pin(t); e != 0 {
		return false
	}
	defer l.io.Unpin(t)
	_, _, e := l.io.Read(t)
	if job := l.walk.job; e == syscall.ENOTSUP && job.Writes != DryRun && job.HardLinks == LinksLabel {
		want, _ := l.wanted(t, d)
		if c := l.choose(want, nil); c.outcome == Written && c.to != "" {
			l.io.SetLabel(c.to)
			_, e = l.io.Write(t)
		}
	}
	return e == syscall.ENOTSUP
}

// guess reports whether to write without reading first (contract point 4).
func (l *labeller) guess() bool {
	if l.walk.job.Writes != Guess || l.wrong < guessAfter {
		return false
	}
	l.turn++
	return l.turn%guessCheck != 0
}

// opens is the call by which an entry is opened.
func (l *labeller) opens() xattrio.SyscallKind {
	if l.walk.mount.Confined == mounts.Resolve {
		return xattrio.Openat2
	}
	return xattrio.Openat
}

// excluded reports whether what, which is t or t opened, is excluded or lies under a mount.
func (l *labeller) excluded(what xattrio.Target, d *directory, t xattrio.Target) (Outcome, bool) {
	m := l.walk.mount
	if len(m.Skip) == 0 && !m.ByDevice {
		return 0, false
	}
	l.pos.now(xattrio.Statx)
	st, e := what.Stat()
	why, is := m.Skip[mounts.IDOf(st)]
	switch {
	case e != 0:
		return 0, false
	case m.ByDevice && st.Dev != m.Stat.Dev:
		return l.skipped(d, t, mounts.OtherFilesystem), true
	case !is:
		return 0, false
	}
	return l.skip(d, t, why), true
}

// skip skips t, with all that is mounted in it. Without a reason t is the place of a mount at
// the start, which is walked on its own. In a small tree the pool, which knows the mounts,
// has it.
func (l *labeller) skip(d *directory, t xattrio.Target, why string) Outcome {
	pool := l.otherMount != nil && !d.rereading
	if pool {
		l.otherMount(d, t)
	}
	if pool || why == "" {
		return Elsewhere
	}
	return l.skipped(d, t, why)
}

// count counts what became of n entries of d; nil is above the root. On the second reading of the
// root all but what is written or fails was counted when it was read first.
func (l *labeller) count(d *directory, o Outcome, n int) {
	if d == nil || !d.rereading || o == Written || o == Failed {
		l.tally.Count(o, n)
	}
}

// countDir counts what became of the label of d itself. No other worker knows of d.
func (l *labeller) countDir(d *directory, o Outcome) {
	d.outcome, d.failed = o, o == Failed
	l.count(d.parent, o, 1)
}

// failDir reports that the entries of d could not all be read. Its outcome becomes a failure, once;
// one that was not counted, on the second reading of the root, is a failure more.
func (l *labeller) failDir(d *directory, op string, err error) {
	l.walk.cache.mu.Lock()
	was := d.failed
	d.failed = true
	l.walk.cache.mu.Unlock()
	if !was {
		l.count(d.parent, d.outcome, -1)
		l.tally.Count(Failed, 1)
	}
	l.failed(d, xattrio.Target{}, op, err)
}

// fail reports what stood in t's way.
func (l *labeller) fail(d *directory, t xattrio.Target, op string, e sys.Errno) Outcome {
	err := error(e)
	if op == l.io.Writes(t).String() && (e == syscall.EACCES || e == syscall.EPERM) {
		err = l.walk.job.Policy.Why(l.io, t, l.io.Label, e, l.pos.now)
	}
	return l.failed(d, t, op, err)
}

// failed, skipped and changed call the caller, and are in no system call during that. Many
// EIOs in a row end the run.
func (l *labeller) failed(d *directory, t xattrio.Target, op string, err error) Outcome {
	l.pos.pause(func() { l.walk.job.Events.Failed(d.Path(t.String()), op, err) })
	var e sys.Errno
	if errors.As(err, &e) && xattrio.VerdictOf(e) == xattrio.Sick {
		if l.eios++; l.eios == sickAfter {
			l.halt(fmt.Errorf("%d errors in a row: %s: %w; the disk seems to be failing", sickAfter, op, e))
		}
	}
	return Failed
}

func (l *labeller) skipped(d *directory, t xattrio.Target, why string) Outcome {
	in := d
	if t.Name == nil && d.parent != nil {
		in = d.parent
	}
	if skip := l.walk.job.Events.Skipped; skip != nil && !in.rereading { // else it was reported when the root was read first
		l.pos.pause(func() { skip(d.Path(t.String()), why) })
	}
	return Skipped
}

func (l *labeller) changed(d *directory, t xattrio.Target, has xattrio.Label) {
	if change := l.walk.job.Events.Changed; change != nil {
		l.pos.pause(func() { change(d.Path(t.String()), has.String(), l.io.Label) })
	}
}

// halt stops the run, and returns when the queue knows. For one entry there is nothing to
// stop.
func (l *labeller) halt(why error) {
	if l.queue == nil {
		return
	}
	l.walk.job.Stop(why)
	for !l.queue.Stopped() {
		runtime.Gosched()
	}
}

// again reports whether a call may be tried again after try. Before that it closes a directory or, if
// there is none, waits: 1 ms, 2, 4 …
func (l *labeller) again(try int) bool {
	if try == tries || l.queue != nil && l.queue.Stopped() {
		return false
	}
	if !l.walk.cache.closeIdle() {
		time.Sleep(time.Millisecond << try)
	}
	return true
}
