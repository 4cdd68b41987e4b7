// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"io/fs"
	"runtime"
	"sync/atomic"
	"syscall"

	"github.com/fastlabel/fastlabel/relabel/internal/mounts"
	"github.com/fastlabel/fastlabel/relabel/internal/order"
	"github.com/fastlabel/fastlabel/relabel/internal/rows"
	"github.com/fastlabel/fastlabel/relabel/internal/sys"
	"github.com/fastlabel/fastlabel/relabel/internal/xattrio"
)

// chunk is the directory records that a worker goes through. Plain names are labelled in
// sweeps, the others one by one.
type chunk struct {
	rows.Chunk
	dir *Dir
}

// buffers are a worker's memory: what it has read, and what it goes through.
type buffers struct {
	buf     []byte
	ordered *order.Batch          // of buf
	chunk   atomic.Pointer[chunk] // of buf
	rowLen  int                   // the most names of a row
}

// yieldAfter entries, a millisecond or two, a worker yields. The scheduler retakes the
// P of one that has not done so for 10 ms, and starts a thread for it.
const yieldAfter = 1024

// equip gives the worker a buffer, and a chunk to go through it.
func (w *worker) equip() {
	w.buf = make([]byte, bufferSize)
	c := &chunk{}
	if w.pool != nil {
		c.Row.Stop = w.pool.StopFlag()
	}
	w.chunk.Store(c)
}

// records labels the entries of d in buf.
func (w *worker) records(d *Dir, fd int, buf []byte) {
	if op, e := w.io.Enter(fd); e != 0 {
		w.spoil(d, op, e)
		return
	}
	c := w.chunk.Load()
	for off := 0; off < len(buf) && !w.stopped(); {
		if w.solo != nil && w.solo.large {
			w.later(d, buf[off:])
			return
		}
		c.dir = d
		w.countsMu.Lock()
		w.shown = w.tally
		next, err := c.Load(buf, off, w.rowLen, w.m.LeftInodes)
		w.countsMu.Unlock()
		w.through(c, d, fd)
		if w.solo != nil {
			w.solo.check(w.tally.Seen)
		}
		if err != nil {
			w.spoil(d, "getdents64", err)
			return
		}
		off = next
	}
}

// through labels the names of the row.
func (w *worker) through(c *chunk, d *Dir, fd int) {
	if w.sinceYield += c.N; w.sinceYield >= yieldAfter {
		w.sinceYield = 0
		runtime.Gosched()
	}
	if w.throttle != nil && c.N > 0 {
		w.wait(fd, c.N)
	}
	w.heed()
	i := 0
	for i < c.N && !w.stopped() {
		end := i
		if w.sweeps() && (!w.chooses(d.want) || w.io.Way != xattrio.ByDescriptor && w.Writes != DryRun) {
			for end < c.N && c.Plain[end] {
				end++
			}
		}
		if end > i {
			i = w.sweep(c, d, fd, i, end)
			continue
		}
		w.entry(d, fd, c.Entry(i))
		i++
	}
	w.noteMet()
}

// wait has the caller hold back the next entries of the directory fd. The caller's code
// does not run with the volume as its thread's working directory.
func (w *worker) wait(fd, entries int) {
	w.io.Enter(w.m.Outside())
	var err error
	w.unwatched(func() { err = w.throttle(entries) })
	if err != nil {
		w.halt(err)
	} else if _, e := w.io.Enter(fd); e != 0 {
		w.halt(&fs.PathError{Op: "fchdir", Path: w.m.Path, Err: e})
	}
}

// sweeps says whether plain entries can be labelled in sweeps: no caller is told
// of each, and its name alone is enough to reach it and read its label.
func (w *worker) sweeps() bool {
	pins := w.io.Way == xattrio.ByDescriptor
	return (!pins || w.m.Confined == mounts.Resolve) && w.Events.Changed == nil && w.HardLinks == LinksLabel && !w.m.Asks && !w.m.Stale
}

// sweep labels the names from i to end of the row, or as many as go without
// trouble and the one with the trouble. It returns the next.
func (w *worker) sweep(c *chunk, d *Dir, fd, i, end int) int {
	o := sys.Order{Way: w.io.Way, Dir: fd, Turn: w.sinceGuess}
	switch {
	case o.Way == xattrio.ByDescriptor && w.ByName && w.Kernel.Way == xattrio.ByName && w.m.Bare:
		o.Way = sys.ByNameOrPin
	case o.Way == xattrio.ByDescriptor:
		o.Way = sys.ByPin
	}
	if w.chooses(d.want) {
		return w.choose(c, d, o, i, end)
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
	w.now(xattrio.Row)
	w.name.Store(nil)
	done := w.io.Mend(&c.Row, i, end, o)
	w.sinceGuess = done.Turn
	i += done.Right + done.Written
	if done.Right > 0 {
		w.wrongStreak = 0
	}
	w.wrongStreak += done.Wrong
	if done.Right+done.Written > 0 {
		w.eios = 0
	}
	if !d.rereading { // else those that are right were counted when they were read first
		w.tally.Seen += int64(done.Right)
		w.tally.Of[Right] += int64(done.Right)
	}
	if o.Look && done.Wrong > 0 { // it would be written
		done.Written = 1
		i++
	}
	w.tally.Seen += int64(done.Written)
	w.tally.Of[Written] += int64(done.Written)
	w.passed.Store(w.tally.Seen)
	return w.broken(c, d, fd, i, done.Trouble, done.Errno)
}

// broken handles what ended a row at its name i, and returns the next. An error of that
// name is handled; a row that was stopped ends there.
func (w *worker) broken(c *chunk, d *Dir, fd, i int, trouble sys.Trouble, errno sys.Errno) int {
	if trouble == sys.None || trouble == sys.Stopped {
		return i
	}
	e := c.Entry(i)
	t := xattrio.Target{FD: fd, Name: e.Cname(), Kind: e.Kind, Ino: e.Ino}
	w.name.Store(t.Name)
	op := w.io.Reads(t)
	if trouble == sys.WriteErr {
		op = w.io.Writes(t)
	}
	w.now(op)
	var o Outcome
	switch {
	case w.io.Way == xattrio.ByDescriptor, // which of its calls it was is not told
		trouble == sys.ReadErr && errno == syscall.ERANGE: // longer than a look has room for
		o = w.label(t, d)
	case trouble == sys.WriteErr && w.refusedButRight(t, errno):
		o = w.settle(t, d, Right, op.String(), 0)
	default:
		o = w.settle(t, d, Failed, op.String(), errno)
	}
	if !d.rereading || o != Right && o != Vanished {
		w.tally.Count(o)
	}
	return i + 1
}

// sweepsAt is the call that a sweep has under way.
func (w *worker) sweepsAt() (xattrio.SyscallKind, *byte) {
	w.countsMu.Lock()
	defer w.countsMu.Unlock()
	c := w.chunk.Load()
	if c == nil {
		return xattrio.Row, nil
	}
	e, write, ok := c.Calling()
	if !ok {
		return xattrio.Row, nil
	}
	t := xattrio.Target{Name: e.Cname()}
	if write {
		return w.io.Writes(t), t.Name
	}
	return w.io.Reads(t), t.Name
}
