// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"github.com/fastlabel/fastlabel/relabel/internal/order"
	"github.com/fastlabel/fastlabel/relabel/internal/sys"
	"github.com/fastlabel/fastlabel/relabel/internal/xattrio"
)

// chunk is what a worker goes through: a buffer of directory records, a row at a
// time. Names that nothing is special about are labelled in sweeps, the others one
// by one.
//
// Who owns what: row.Next is taken by compare and swap, by the worker from name
// to name, and by another that takes all that is left from a worker that is held
// up. All else is the worker's; it writes it while Next is closed, and holding
// mu, since another goroutine may tell where it hangs.
//
// What is left is taken name by name, since one entry may have a whole tree beneath
// it. Where a worker that hangs keeps its row, or the 16 entries of a piece, all that
// follows in it waits for the call: in 20 of 88 runs of TestHung (test/torture)
// directories and what is in them were left undone.
type chunk struct {
	row   sys.Row
	n     int // names in the row: . and .. are none
	plain [sys.RowLen]bool

	dir *Dir
	buf []byte // the records, whole

	left atomic.Int32 // the name at which another worker took the rest
	mu   *sync.Mutex
}

// buffers are a worker's memory: what it has read, and what it goes through. Others
// may take the rest of what chunk goes through.
type buffers struct {
	buf     []byte
	ordered *order.Batch          // of buf
	chunk   atomic.Pointer[chunk] // of buf
	rowLen  int                   // the most names of a row
}

const (
	closed = -1 // nothing can be taken
	taking = -2 // another worker is about to take it
	handed = -3 // it has been taken
)

// yieldAfter entries, a millisecond or two, a worker yields. The scheduler retakes the
// P of one that has not done so for 10 ms, and starts a thread for it.
const yieldAfter = 1024

func newChunk(w *worker) *chunk {
	c := &chunk{mu: &w.countsMu}
	c.row.Next.Store(closed)
	if w.pool != nil {
		c.row.Stop = w.pool.StopFlag()
	}
	return c
}

// equip gives the worker a buffer, and a chunk to go through it.
func (w *worker) equip() {
	w.buf = make([]byte, bufferSize)
	w.chunk.Store(newChunk(w))
}

// records labels the entries of d in buf, unless it is relieved of them.
func (w *worker) records(d *Dir, fd int, buf []byte) {
	if d.Note.extent == changes && !w.journaled {
		w.subdirectories(d, fd, buf)
		return
	}
	if op, e := w.io.Enter(fd); e != 0 {
		w.spoil(d, op, e)
		return
	}
	defer w.turnPage() // while d is open
	c := w.chunk.Load()
	for off := 0; off < len(buf) && !w.stopped(); {
		next, err := c.load(w, d, buf, off)
		if !w.through(c, d, fd) {
			w.equip() // the buffer is another's now
			return
		}
		if err != nil {
			w.spoil(d, "getdents64", err)
			return
		}
		off = next
	}
}

// load makes a row of the records at off, and returns where the next begins.
func (c *chunk) load(w *worker, d *Dir, buf []byte, off int) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w.shown = w.tally
	c.dir, c.buf, c.n = d, buf, 0
	c.row.Base, c.row.Head = unsafe.SliceData(buf), sys.NameAt
	var err error
	for c.n < w.rowLen && off < len(buf) {
		e, length, bad := sys.Parse(buf[off:])
		if bad != nil {
			err = bad
			break
		}
		if !sys.IsDot(e.Name) {
			c.row.At[c.n] = uint32(off)
			c.plain[c.n] = w.plain(e)
			c.n++
		}
		off += length
	}
	c.row.At[c.n] = uint32(off)
	c.row.Next.Store(0)
	return off, err
}

// plain says that an entry is labelled and nothing else is to be asked of it.
func (w *worker) plain(e sys.Dirent) bool {
	return e.Kind != sys.KindDir && e.Kind != sys.KindUnknown && !w.m.LeftInodes[e.Ino]
}

// at is entry i of the row.
func (c *chunk) at(i int) sys.Dirent {
	e, _, _ := sys.Parse(c.buf[c.row.At[i]:]) // it was parsed before
	return e
}

// through labels the names of the row. It says no if it was relieved of them.
func (w *worker) through(c *chunk, d *Dir, fd int) bool {
	if w.sinceYield += c.n; w.sinceYield >= yieldAfter {
		w.sinceYield = 0
		runtime.Gosched()
	}
	if w.throttle != nil && c.n > 0 && !w.journaled {
		w.telling(func() { w.throttle(c.n) })
	}
	w.heed()
	i := 0
	for i < c.n && !w.stopped() {
		end := i
		if w.sweeps() {
			for end < c.n && c.plain[end] {
				end++
			}
		}
		if end > i {
			next, ok := w.sweep(c, d, fd, i, end)
			if !ok {
				return false
			}
			i = next
			continue
		}
		if !c.move(i, i+1) {
			return false
		}
		w.entry(d, fd, c.at(i))
		i++
	}
	w.noteRight()
	return c.move(i, closed)
}

// sweeps says whether plain entries can be labelled in sweeps: no caller is told
// of each, and its name alone is enough to reach it.
func (w *worker) sweeps() bool {
	return w.io.Way != xattrio.ByDescriptor && w.Events.Changed == nil && w.Writes != DryRun && w.HardLinks == LinksLabel && !w.m.Asks
}

// sweep labels the names from i to end of the row, or as many as go without
// trouble and the one with the trouble. It returns the next, and says no if
// another worker took the rest.
func (w *worker) sweep(c *chunk, d *Dir, fd, i, end int) (int, bool) {
	o := sys.Order{Dir: fd, Turn: w.sinceGuess}
	if w.io.Way == xattrio.ByThread {
		o.Way = sys.ByCwd
	}
	if w.chooses(d.Note.want) {
		return w.choose(c, d, o, i, end)
	}
	w.ready(d.Note.want.Label)
	if w.keeps() {
		return w.look(c, d, o, i, end)
	}
	if w.journaled {
		o.Blind, o.Check = true, math.MaxInt // it was read
	} else if w.Writes == Guess {
		if w.wrongStreak < guessAfter {
			end = min(end, i+guessAfter-w.wrongStreak)
		} else {
			o.Blind, o.Check = true, guessCheck
		}
	}
	w.now(xattrio.Row)
	w.name.Store(nil)
	done := w.io.Mend(&c.row, i, end, o)
	w.sinceGuess = done.Turn
	i += done.Right + done.Written
	if done.Right > 0 {
		w.wrongStreak = 0
	}
	w.wrongStreak += done.Wrong
	if done.Right+done.Written > 0 {
		w.eios = 0
	}
	if !d.Note.rereading { // else those that are right were counted when they were read first
		w.tally.Seen += int64(done.Right)
		w.tally.Of[Right] += int64(done.Right)
	}
	w.tally.Seen += int64(done.Written)
	w.tally.Of[Written] += int64(done.Written)
	w.passed.Store(w.tally.Seen)
	return w.broken(c, d, fd, i, done.Trouble, done.Errno)
}

// broken handles what ended a row at its name i: an error for that name, or that
// another worker took the rest.
func (w *worker) broken(c *chunk, d *Dir, fd, i int, trouble sys.Trouble, errno sys.Errno) (int, bool) {
	switch trouble {
	case sys.ReadErr, sys.WriteErr:
		e := c.at(i)
		t := xattrio.Target{FD: fd, Name: e.Cname(), Kind: e.Kind}
		w.name.Store(t.Name)
		op := w.io.Reads(t)
		if trouble == sys.WriteErr {
			op = w.io.Writes(t)
		}
		w.now(op)
		var o Outcome
		switch {
		case trouble == sys.ReadErr && errno == syscall.ERANGE: // longer than a look has room for
			o = w.label(t, d)
		case trouble == sys.WriteErr && w.refusedButRight(t, errno):
			o = w.settle(t, d, Right, op.String(), 0)
		default:
			o = w.settle(t, d, Failed, op.String(), errno)
		}
		if !d.Note.rereading || o != Right && o != Vanished {
			w.tally.Count(o)
		}
		return i + 1, true
	case sys.Taken:
		if !w.stopped() {
			c.wait()
			return i, false
		}
	}
	return i, true
}

// sweepsAt is the call that a sweep has under way.
func (w *worker) sweepsAt() (xattrio.SyscallKind, *byte) {
	w.countsMu.Lock()
	defer w.countsMu.Unlock()
	c := w.chunk.Load()
	if c == nil {
		return xattrio.Row, nil
	}
	next := int(c.row.Next.Load())
	if next < 0 {
		next = int(c.left.Load())
	}
	if next < 1 || next > c.n {
		return xattrio.Row, nil
	}
	e := c.at(next - 1)
	t := xattrio.Target{Name: e.Cname()}
	if c.row.Writing.Load() {
		return w.io.Writes(t), t.Name
	}
	return w.io.Reads(t), t.Name
}

// move moves Next on, or closes the row, for the worker whose chunk it is. It
// says no if the rest of it was handed on.
func (c *chunk) move(from, to int) bool {
	if c.row.Next.CompareAndSwap(int32(from), int32(to)) {
		return true
	}
	c.wait()
	return false
}

// wait returns once the worker that takes the rest has the directory pinned.
func (c *chunk) wait() {
	for c.row.Next.Load() == taking {
		time.Sleep(50 * time.Microsecond)
	}
}
