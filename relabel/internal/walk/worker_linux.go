// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/fastlabel/fastlabel/relabel/internal/commit"
	"github.com/fastlabel/fastlabel/relabel/internal/mounts"
	"github.com/fastlabel/fastlabel/relabel/internal/order"
	"github.com/fastlabel/fastlabel/relabel/internal/steal"
	"github.com/fastlabel/fastlabel/relabel/internal/sys"
	"github.com/fastlabel/fastlabel/relabel/internal/watch"
	"github.com/fastlabel/fastlabel/relabel/internal/xattrio"
)

// item is a piece of work. To enter a directory, which there may be millions of, is none that
// do does: it would be 32 bytes more for each.
type item struct {
	do   func(*worker) // nil: the directory name, with its NUL, in the directory in is entered
	in   *Dir          // it expects that, and may stay held
	name string
	rest *Dir // the directory that do reads on in
}

// restOf is the work on what was not read of d, which is pinned for that.
func restOf(d *Dir) item {
	return item{rest: d, do: func(w *worker) {
		w.cache.beginRest()
		w.scan(d, d.FD())
		w.cache.release(d)
	}}
}

// labelling is the work on records of d or, if there are none, on all of d, which expects it.
func labelling(d *Dir, records []byte) item {
	return item{do: func(w *worker) {
		w.at(d, nil)
		fd, op, e := w.cache.acquire(d)
		if e == 0 {
			defer w.cache.release(d)
			if records != nil {
				w.records(d, fd, records)
				return
			}
			op, e = "lseek", sys.Rewind(fd, 0)
		}
		switch {
		case e == 0:
			w.scan(d, fd)
		case xattrio.Judge(e) != xattrio.Gone: // else it is gone with all that was in it
			w.spoil(d, op, e)
		}
	}}
}

const (
	// bufferSize is what a worker reads of a directory, and so the largest piece of
	// work: some 2,000 names, 5 ms of labelling.
	bufferSize = 64 << 10
	// piece is how many entries are one where calls wait for a server: 16 ms
	// at a millisecond a call.
	piece = 16
	// guessAfter wrong labels in a row are taken to say that the rest is
	// wrong too: the walk then writes unread, but for one in guessCheck.
	// Together they keep the calls for an entry below 1.02.
	guessAfter = 32
	guessCheck = 64
	// tries bounds how often one call is tried again, a millisecond apart
	// at first and twice as long each time: about a quarter of a second.
	tries = 8
	// sickAfter EIOs in a row, with nothing that succeeded between, end the
	// run: reading the rest of a dying disk takes days and helps no one.
	sickAfter = 128
)

// worker is one goroutine's share of the walk. It belongs to that goroutine. Any other may
// read what is atomic, to tell how far a run is or where it hangs, and what countsMu guards.
type worker struct {
	*Walk
	pool *steal.Worker[item] // nil: see solo
	solo *solo               // nil: there is a pool, or one entry

	in     atomic.Pointer[Dir]  // nil while it has nothing to do
	name   atomic.Pointer[byte] // of the entry in it
	step   atomic.Uint32        // of a visit
	doing  atomic.Uint32        // an xattrio.SyscallKind
	moves  atomic.Uint64        // items worked on, readings of a directory, and pauses
	paused atomic.Bool          // see unwatched
	seen   watch.Seen           // of the worker

	io      xattrio.IO
	writing string     // the label that io writes
	found   *sys.Found // what the row had, where that decides what is written
	known   struct {   // what Change was asked last, and its answer
		has, want string
		choice
	}

	tally       Tally
	wrongStreak int
	sinceGuess  int // entries since the walk began to guess
	sinceYield  int // entries since others had a turn
	eios        int // in a row

	countsMu sync.Mutex
	shown    Tally // the tally as it was when the row began
	row      row   // of buf; countsMu guards its loading

	buf       []byte
	ordered   *order.Batch // of buf
	held      heldDir
	closeNext int // the directory that was visited last, or -1
}

// at tells where the worker is.
func (w *worker) at(d *Dir, name *byte) {
	w.in.Store(d)
	w.name.Store(name)
}

// now says which call comes next, if it is another than the last.
func (w *worker) now(k xattrio.SyscallKind) {
	if w.doing.Load() != uint32(k) {
		w.doing.Store(uint32(k))
	}
}

// unwatched is for a worker that calls the caller's code, waits to, or sorts. It is in no
// system call during that, and is not replaced.
func (w *worker) unwatched(what func()) {
	w.paused.Store(true)
	what()
	w.moves.Add(1) // first: where its place is compared, it has moved
	w.paused.Store(false)
}

// A worker is a watch.Watched.

func (w *worker) Seen() *watch.Seen { return &w.seen }
func (w *worker) Busy() bool        { return w.in.Load() != nil && !w.paused.Load() } // else it waits for work
func (w *worker) Replace() bool     { return w.pool != nil && w.relieve() }

func (w *worker) Place() any {
	return [5]any{w.moves.Load(), w.name.Load(), w.doing.Load(), w.step.Load(), w.row.names.Step.Load()}
}

func (w *worker) Call() watch.Call {
	call, name := xattrio.SyscallKind(w.doing.Load()), w.name.Load()
	switch call {
	case xattrio.Row:
		call, name = w.sweepsAt()
	case xattrio.Visit:
		call = xattrio.Visits(sys.Step(w.step.Load()))
	}
	path := w.m.Path
	if d := w.in.Load(); d != nil {
		path = d.Path(sys.Text(name))
	}
	return watch.Call{Call: call.String(), Path: path}
}

// push makes work of it, which w is the first to take.
func (w *worker) push(it item) {
	if w.solo != nil {
		w.solo.rest = append(w.solo.rest, it)
		return
	}
	w.pool.Push(it)
	w.hire()
}

// give makes work of it, which w is the last to take.
func (w *worker) give(it item) {
	w.pool.Give(it)
	w.hire()
}

func (w *worker) do(it item) {
	if it.do == nil {
		w.enter(it.in, it.name)
	} else {
		w.held.release(&w.cache)
		w.closeVisited()
		it.do(w)
	}
	w.in.Store(nil)
	w.moves.Add(1)
	w.countsMu.Lock()
	w.shown = w.tally
	w.countsMu.Unlock()
}

// scan reads one buffer of d, gives the rest of d to a worker that is free, and
// labels what it has read.
func (w *worker) scan(d *Dir, fd int) {
	w.at(d, nil)
	w.askAhead(d, fd)
	n, more := w.fill(d, fd, 0)
	w.share(d, fd, n, more)
}

// share gives the rest of d, if there is more of it, and labels the n bytes of
// records that were read.
func (w *worker) share(d *Dir, fd, n int, more bool) {
	if d == w.top && w.begins.Listed != nil { // the first that is read of it
		if !more {
			w.begins.Listed(w.buf[:n])
		}
		w.begins.Listed = nil
	}
	switch {
	case w.solo != nil && more:
		w.solo.large = true
		w.later(d, nil)
		return
	case w.solo != nil:
		w.check(w.tally.Seen + int64(n/recordSize))
		w.records(d, fd, w.buf[:n])
		return
	case more:
		var taken bool
		if n, taken = w.queueSampled(d, fd, n); taken || w.fillWindow(d, fd, n) {
			return
		}
		if w.cache.pinRest(d) {
			w.give(restOf(d))
		} else {
			// So many rests wait that this one comes next, before the
			// directories in it: memory rather than descriptors.
			defer w.push(restOf(d))
		}
	}
	if w.m.Served {
		w.spread(d, fd, n)
		return
	}
	w.labelBuffer(d, fd, n)
}

// spread makes many pieces of work of the n bytes of records in the buffer: where
// each entry takes a server's time, one worker would take seconds for them, and
// all the others have nothing to do if it is all there is.
func (w *worker) spread(d *Dir, fd, n int) {
	rest := w.buf[:n]
	for {
		end, _, err := firstOf(rest, piece, func(sys.Dirent) bool { return true })
		if err != nil || end == len(rest) {
			break
		}
		w.later(d, rest[:end])
		rest = rest[end:]
	}
	w.records(d, fd, rest)
}

// entry labels one entry of d, or makes work of it if it is a directory.
func (w *worker) entry(d *Dir, fd int, e sys.Dirent) {
	t := xattrio.Target{FD: fd, Name: e.Cname(), Kind: e.Kind, Ino: e.Ino}
	w.name.Store(t.Name)
	if w.m.Asks || w.m.LeftInodes[e.Ino] {
		if o, is := w.left(t, d, t); is {
			w.count(d, o, 1)
			return
		}
	}
	if e.Kind == sys.KindUnknown {
		if st, errno := t.Stat(); errno == 0 {
			e.Kind, t.Kind = st.Kind, st.Kind
		} // else labelling it will say what is wrong with it
	}
	if e.Kind == sys.KindDir {
		if d.rereading && w.isRight(t, d.want.Label) {
			return // it needs no second visit
		}
		w.tally.Found++
		w.cache.expect(d)
		w.push(item{in: d, name: string(e.Name[:len(e.Name)+1])})
		return
	}
	w.count(d, w.label(t, d), 1)
}

// count counts what became of n entries of d. On the second reading of the root all but
// what is written or fails was counted when it was read first.
func (w *worker) count(d *Dir, o Outcome, n int) {
	if !d.rereading || o == Written || o == Failed {
		w.tally.Count(o, n)
	}
}

// askAhead asks, once, for what is to be read of d.
func (w *worker) askAhead(d *Dir, fd int) {
	if w.readsAhead() && !d.ahead {
		d.ahead = true
		w.ahead.ask(w.m, fd, w.now)
	}
}

// readsAhead says whether what is near a directory is asked for with it.
func (w *worker) readsAhead() bool { return w.m.Kind == sys.Ext4 && w.ahead.pays() }

// fill reads records of d until the buffer, which has n bytes of them, is full, and says
// if there may be more. Only a reading of nothing is the end.
func (w *worker) fill(d *Dir, fd, n int) (int, bool) {
	for len(w.buf)-n >= sys.RecordMax {
		got, more := w.getdents(d, fd, n)
		if n += got; got == 0 {
			return n, more
		}
	}
	return n, true
}

// getdents reads records of d once, into the buffer from n on.
func (w *worker) getdents(d *Dir, fd, n int) (got int, more bool) {
	w.now(xattrio.Getdents64)
	for try := 0; ; try++ {
		got, e := sys.Getdents(fd, w.buf[n:])
		switch {
		case e == 0:
			w.moves.Add(1)
			return got, got > 0
		case e == syscall.EINVAL && n > 0:
			return 0, true // too little room for the next record
		case xattrio.Judge(e) == xattrio.Gone:
			return 0, false // the directory itself was removed
		case xattrio.Judge(e) != xattrio.Again || !w.retry(try):
			w.spoil(d, "getdents64", e)
			return 0, false
		}
	}
}

// left says whether what, which is t or t opened, is to be left alone: excluded,
// or lying under a mount, where only a clone shows it.
func (w *worker) left(what xattrio.Target, d *Dir, t xattrio.Target) (Outcome, bool) {
	if len(w.m.Left) == 0 {
		return 0, false
	}
	w.now(xattrio.Statx)
	st, e := what.Stat()
	why, is := w.m.Left[mounts.IDOf(st)]
	if e != 0 || !is {
		return 0, false
	}
	return w.leave(d, t, why), true
}

// ready has the worker write label, until another is to be written.
func (w *worker) ready(label string) {
	if label != w.writing {
		w.writing = label
		w.io.SetValue(label)
	}
}

// heed stops the run when its root is not its own any more. It is asked now and then,
// by the worker that comes first; where the answer is late, all wait for it.
func (w *worker) heed() {
	for w.Root != nil && !w.stopped() {
		if w.Root.Due() {
			w.now(xattrio.Fgetxattr)
			if err := w.Root.Ours(); errors.Is(err, commit.ErrOvertaken) {
				w.halt(err)
			}
			return
		}
		if w.Root.Sure() {
			return
		}
		w.unwatched(func() { time.Sleep(time.Millisecond) })
	}
}

// stopped says that the item at hand had better be finished soon. For one entry there is
// nothing to stop.
func (w *worker) stopped() bool {
	if w.pool == nil {
		return w.solo != nil && w.ctx.Err() != nil
	}
	return w.pool.Stopped()
}

// halt stops the run, and returns when the pool knows.
func (w *worker) halt(why error) {
	if w.pool == nil && w.solo == nil {
		return
	}
	w.Stop(why)
	for w.pool != nil && !w.pool.Stopped() {
		runtime.Gosched()
	}
}

// retry reports whether a call may be tried again after try. Before that it closes a
// directory or, if there is none to be closed, waits: 1 ms, 2, 4 …
func (w *worker) retry(try int) bool {
	if try == tries || w.stopped() {
		return false
	}
	if !w.cache.closeIdle() {
		time.Sleep(time.Millisecond << try)
	}
	return true
}
