// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"cmp"
	"context"
	"io/fs"
	"math"
	"runtime"
	"syscall"
	"unsafe"

	"github.com/fastlabel/fastlabel/relabel/internal/mounts"
	"github.com/fastlabel/fastlabel/relabel/internal/sys"
	"github.com/fastlabel/fastlabel/relabel/internal/xattrio"
)

const (
	// pacedRow is how many names are a row where the caller holds the work back: at
	// ten entries a second, a worker asks about once a second.
	pacedRow = 8
	// yieldAfter entries, a millisecond or two, a worker yields. The scheduler retakes
	// the P of one that has not done so for 10 ms, and starts a thread for it.
	yieldAfter = 1024
)

// row is names of a buffer of directory records that are labelled in one go (sys.Row), all
// but those that are not plain. It belongs to one worker, which loads the next one holding a
// mutex, since another goroutine may ask which entry's call is under way. A worker whose
// call hangs keeps what is left of its buffer until the call returns: the run cannot
// complete before that.
type row struct {
	names   sys.Row
	n       int // how many: . and .. are none
	plain   [sys.RowLen]bool
	records []byte // the buffer
}

// load makes a row of the records at off, of so many names at most, without those of inode
// numbers below least, and returns where the next begins.
func (r *row) load(records []byte, off, most int, special map[uint64]bool, least uint64) (int, error) {
	r.records, r.n = records, 0
	r.names.Base, r.names.Head = unsafe.SliceData(records), sys.NameAt
	var err error
	for r.n < most && off < len(records) {
		e, length, bad := sys.Parse(records[off:])
		if bad != nil {
			err = bad
			break
		}
		if e.Ino >= least && !sys.IsDot(e.Name) {
			r.names.At[r.n] = uint32(off)
			r.plain[r.n] = isPlain(e, special)
			r.n++
		}
		off += length
	}
	r.names.At[r.n] = uint32(off)
	r.names.Step.Store(0)
	return off, err
}

// isPlain reports whether an entry is labelled and nothing else is to be asked of it.
func isPlain(e sys.Dirent, special map[uint64]bool) bool {
	return e.Kind != sys.KindDir && e.Kind != sys.KindUnknown && !special[e.Ino]
}

// entry returns entry i of the row.
func (r *row) entry(i int) sys.Dirent {
	e, _, _ := sys.Parse(r.records[r.names.At[i]:]) // it was parsed before
	return e
}

// firstOf returns where in records the first n entries that count end, and where the last
// of these begins. Records that cannot be parsed that far are an error.
func firstOf(records []byte, n int, counts func(sys.Dirent) bool) (end, last int, err error) {
	for n > 0 && end < len(records) {
		e, length, err := sys.Parse(records[end:])
		if err != nil {
			return 0, 0, err
		}
		if counts(e) {
			n--
		}
		end, last = end+length, end
	}
	return end, last, nil
}

// records labels the entries of d in buf: plain names in sweeps, the others one by one.
func (w *worker) records(d *Dir, fd int, buf []byte) {
	if op, e := w.io.Enter(fd); e != 0 {
		w.spoil(d, op, e)
		return
	}
	most := sys.RowLen
	if w.Throttle != nil {
		most = pacedRow
	}
	for off := 0; off < len(buf) && !w.stopped(); {
		if w.solo != nil && w.solo.large {
			w.later(d, buf[off:])
			return
		}
		w.countsMu.Lock()
		w.shown = w.tally
		next, err := w.row.load(buf, off, most, w.m.LeftInodes, d.labelledBelow)
		w.countsMu.Unlock()
		w.through(d, fd)
		if w.solo != nil {
			w.check(w.tally.Seen)
		}
		if err != nil {
			w.spoil(d, "getdents64", err)
			return
		}
		off = next
	}
}

// through labels the names of the row.
func (w *worker) through(d *Dir, fd int) {
	r := &w.row
	if w.sinceYield += r.n; w.sinceYield >= yieldAfter {
		w.sinceYield = 0
		runtime.Gosched()
	}
	if w.Throttle != nil && r.n > 0 {
		w.wait(fd, r.n)
	}
	w.heed()
	sweeps := w.sweeps(d.want)
	for i := 0; i < r.n && !w.stopped(); {
		end := i
		for sweeps && end < r.n && r.plain[end] {
			end++
		}
		if end > i {
			i = w.sweep(d, fd, i, end)
			continue
		}
		w.entry(d, fd, r.entry(i))
		i++
	}
	// Large directories of wrong labels are gathered, and a worker that begins writes unread.
	if wrong := w.wrongStreak >= guessAfter; w.wrong.Load() != wrong {
		w.wrong.Store(wrong)
	}
}

// wait has the caller hold back the next entries of the directory fd. The caller's code
// does not run with the volume as its thread's working directory.
func (w *worker) wait(fd, entries int) {
	w.io.Enter(w.m.Outside())
	var err error
	w.unwatched(func() { err = cmp.Or(w.Throttle(w.ctx, entries), context.Cause(w.ctx)) })
	if err != nil {
		w.halt(err)
	} else if _, e := w.io.Enter(fd); e != 0 {
		w.halt(&fs.PathError{Op: "fchdir", Path: w.m.Path, Err: e})
	}
}

// sweeps says whether plain entries can be labelled in sweeps: no caller is told
// of each, and its name alone is enough to reach it and read its label.
func (w *worker) sweeps(want *Want) bool {
	if w.io.Way == sys.ByDescriptor && (w.m.Confined != mounts.Resolve || w.chooses(want)) {
		return false
	}
	return w.Events.Changed == nil && w.HardLinks == LinksLabel && !w.m.Asks && !w.m.Stale
}

// sweep labels the names from i to end of the row, or as many as go without
// trouble and the one with the trouble. It returns the next.
func (w *worker) sweep(d *Dir, fd, i, end int) int {
	o := sys.Order{Way: w.io.Way, Dir: fd, Turn: w.sinceGuess}
	if w.ByName && w.Writes == DryRun && w.Kernel.Way == sys.ByName && end-i >= bareFrom && w.m.Bare() {
		o.Way = sys.ByName
	}
	if w.chooses(d.want) {
		return w.lookFirst(d, o, i, end)
	}
	w.ready(d.want.Label)
	o.Look = w.Writes == DryRun
	if w.Writes == Guess {
		if w.wrongStreak < guessAfter {
			end = min(end, i+guessAfter-w.wrongStreak)
		} else {
			o.Blind, o.Check = true, guessCheck
		}
	}
	return w.mend(d, o, i, end)
}

// lookFirst is sweep where an entry's own name, or the label that it has, decides what is
// written. The row is read first, as a whole; then it is chosen for each name; then those
// that follow one another and get the same label are written in one go. What is right costs
// what it costs elsewhere, a call, and no memory.
func (w *worker) lookFirst(d *Dir, o sys.Order, i, end int) int {
	want := d.want
	if want.Rules == nil && want.Label == "" {
		w.count(d, Skipped, end-i)
		return end
	}
	if w.found == nil {
		w.found = new(sys.Found)
	}
	w.now(xattrio.Row)
	w.name.Store(nil)
	read, errno := w.io.Look(&w.row.names, i, end, o, w.found)
	if read > i {
		w.eios = 0
	}
	var choices [sys.RowLen]choice
	for k := i; k < read; k++ {
		label, err := want.Label, error(nil)
		if want.Rules != nil {
			e := w.row.entry(k)
			label, err = want.Rules.Entry(e.Name, e.Kind)
		}
		stored, has := w.found.At(k)
		choices[k] = w.choose(label, xattrio.Label{Stored: stored, None: !has})
		if err != nil {
			choices[k] = choice{outcome: Failed, err: err}
		}
	}
	o.Blind, o.Check = true, math.MaxInt // it was read
	for i < read && !w.stopped() {
		c := choices[i]
		if c.outcome != Written || w.Writes == DryRun {
			e := w.row.entry(i)
			w.count(d, w.unwritten(d, xattrio.Target{Name: e.Cname()}, c), 1)
			i++
			continue
		}
		k := i + 1
		for k < read && choices[k].outcome == Written && choices[k].to == c.to {
			k++
		}
		w.ready(c.to)
		i = w.mend(d, o, i, k)
	}
	if i < read {
		return i
	}
	return w.broken(d, o.Dir, i, false, errno)
}

// mend goes through the names from i to end of the row, counts them, and returns the next.
func (w *worker) mend(d *Dir, o sys.Order, i, end int) int {
	w.now(xattrio.Row)
	w.name.Store(nil)
	done := w.io.Mend(&w.row.names, i, end, o)
	w.sinceGuess = done.Turn
	if done.Right > 0 {
		w.wrongStreak = 0
	}
	w.wrongStreak += done.Wrong
	if o.Look && done.Wrong > 0 {
		done.Written = 1 // it would be
	}
	if done.Right+done.Written > 0 {
		w.eios = 0
	}
	w.count(d, Right, done.Right)
	w.count(d, Written, done.Written)
	return w.broken(d, o.Dir, i+done.Right+done.Written, done.Write, done.Errno)
}

// broken handles what ended a row at its name i, and returns the next. An error of that
// name is handled; a row that was stopped ends there.
func (w *worker) broken(d *Dir, fd, i int, write bool, errno sys.Errno) int {
	if errno == 0 {
		return i
	}
	e := w.row.entry(i)
	t := xattrio.Target{FD: fd, Name: e.Cname(), Kind: e.Kind, Ino: e.Ino}
	w.name.Store(t.Name)
	op := w.io.Reads(t)
	if write {
		op = w.io.Writes(t)
	}
	w.now(op)
	if w.io.Way == sys.ByDescriptor || // which of its calls it was is not told
		errno == syscall.ERANGE { // longer than a look has room for
		w.count(d, w.label(t, d), 1)
	} else {
		w.count(d, w.settle(t, d, Failed, op.String(), errno), 1)
	}
	return i + 1
}

// sweepsAt is the call that a sweep has under way.
func (w *worker) sweepsAt() (xattrio.SyscallKind, *byte) {
	w.countsMu.Lock()
	defer w.countsMu.Unlock()
	i, write := w.row.names.Calling()
	if i < 0 || i >= w.row.n {
		return xattrio.Row, nil
	}
	e := w.row.entry(i)
	t := xattrio.Target{Name: e.Cname()}
	if write {
		return w.io.Writes(t), t.Name
	}
	return w.io.Reads(t), t.Name
}
