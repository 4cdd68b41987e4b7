// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/fastlabel/fastlabel/relabel/internal/mounts"
	"github.com/fastlabel/fastlabel/relabel/internal/order"
	"github.com/fastlabel/fastlabel/relabel/internal/steal"
	"github.com/fastlabel/fastlabel/relabel/internal/sys"
	"github.com/fastlabel/fastlabel/relabel/internal/watch"
	"github.com/fastlabel/fastlabel/relabel/internal/xattrio"
)

// item is a piece of work: a directory to enter, which is name in dir; a range of
// dir to gather, or a slice of what was; records of dir that were read; or with none
// of these, the rest of a directory that is open.
type item struct {
	dir       *dir
	name      string // with its NUL
	gathering *gathering
	slice     order.Slice // zero: gather
	rest      []byte      // records that another worker had read, but was held up
	page      *page       // what it bore is on disk, and it may be written
	keep      bool        // what waits in the ledger is to be put on disk
}

// goesOn says that the item is the rest of a directory: it holds that open.
func (it item) goesOn() bool {
	return it.name == "" && it.gathering == nil && it.rest == nil && it.page == nil && !it.keep
}

const (
	// bufferSize is one reading of a directory, and so the largest piece of
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
	// run: reading the rest of a dying disk takes days and helps nobody.
	sickAfter = 128
)

// worker is one goroutine's share of the walk of one mount. All of it belongs
// to that goroutine but for what follows the word "shared".
type worker struct {
	*run
	pool        *steal.Worker[item]
	m           *mount
	io          xattrio.IO
	buf         []byte
	tally       tally
	wrongStreak int          // wrong labels in a row
	sinceGuess  int          // entries since the walk began to guess
	eios        int          // EIOs in a row
	sinceYield  int          // entries since others had a turn
	held        *dir         // stays open for the items that come next
	closeNext   int          // a directory to close, or -1: see releaseVisited
	owed        int          // items that expected it, and were worked on
	ordered     *order.Batch // of buf
	rowLen      int          // the most names of a row

	page      *page      // being filled: see former_linux.go
	journaled bool       // what is labelled now was recorded
	found     *sys.Found // what a row bore
	last      string     // the last label that was met and was wrong

	throttle func(entries int) // nil: nobody holds the work back

	// Shared with whoever asks how far the worker is, or where it hangs.
	in     atomic.Pointer[dir] // nil while it has nothing to do
	name   atomic.Pointer[byte]
	step   atomic.Uint32         // of a visit
	doing  atomic.Uint32         // an xattrio.SyscallKind
	items  atomic.Uint64         // worked on so far
	passed atomic.Int64          // entries met, but for those of the row at hand
	chunk  atomic.Pointer[chunk] // of buf; others may take its rest
	paused atomic.Bool           // by the caller: see pace
	pauses atomic.Uint32         // that have ended
	mu     sync.Mutex
	shown  tally // as the last row began
	summed bool  // it is in the run's total

	watched watch.Worker
}

func (w *worker) do(it item) {
	if it.dir != w.held || it.name == "" {
		w.releaseParent()
	}
	if it.name == "" {
		w.closeVisited()
	}
	switch {
	case it.keep:
		w.keepDue()
	case it.page != nil:
		w.write(it.page)
	case it.slice != order.Slice{}:
		w.labelSlice(it.gathering, it.slice)
	case it.gathering != nil:
		w.gather(it.gathering)
	case it.rest != nil:
		w.finish(it.dir, it.rest)
	case it.name != "":
		w.tally.entered++
		w.enter(it.dir, it.name)
	default:
		w.cache.kept()
		if !w.queueRest(it.dir) {
			w.scan(it.dir, int(it.dir.fd))
		}
		w.cache.release(it.dir)
	}
	w.turnPage()
	w.in.Store(nil)
	w.items.Add(1)
	w.passed.Store(w.tally.seen)
	w.mu.Lock()
	w.show()
	w.mu.Unlock()
}

// show lets others see what was counted. The worker holds mu.
func (w *worker) show() {
	w.shown = w.tally
}

// now says which call comes next, if it is another than the last.
func (w *worker) now(k xattrio.SyscallKind) {
	if w.doing.Load() != uint32(k) {
		w.doing.Store(uint32(k))
	}
}

// finish labels the entries of d that are in records.
func (w *worker) finish(d *dir, records []byte) {
	w.at(d, nil)
	fd, op, e := w.cache.acquire(d)
	if e != 0 {
		w.spoil(d, op, e)
		return
	}
	w.records(d, fd, records)
	w.cache.release(d)
}

// scan reads one buffer of d, gives the rest of d to whoever is free, and
// labels what it has read.
func (w *worker) scan(d *dir, fd int) {
	w.at(d, nil)
	n, more := w.fill(d, fd)
	w.share(d, fd, n, more)
}

// share gives the rest of d, if there is more of it, and labels the n bytes of
// records that were read.
func (w *worker) share(d *dir, fd, n int, more bool) {
	if more {
		var taken bool
		if n, taken = w.queueSampled(d, fd, n); taken || w.fillWindow(d, fd, n) {
			return
		}
		if w.cache.keep(d) {
			w.pool.Give(item{dir: d})
		} else {
			// So many rests wait that this one comes next, before the
			// directories in it: memory rather than descriptors.
			defer w.pool.Push(item{dir: d})
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
func (w *worker) spread(d *dir, fd, n int) {
	rest, count := w.buf[:n], 0
	for off := 0; off < len(rest); {
		_, length, err := sys.Parse(rest[off:])
		if err != nil {
			break // records tells
		}
		off += length
		if count++; count == piece && off < len(rest) {
			w.cache.expect(d)
			w.pool.Push(item{dir: d, rest: rest[:off:off]})
			rest, off, count = rest[off:], 0, 0
		}
	}
	if len(rest) < n {
		w.equip() // the buffer is shared by now
	}
	w.records(d, fd, rest)
}

// entry labels one entry of d, or makes work of it if it is a directory.
func (w *worker) entry(d *dir, fd int, e sys.Dirent) {
	t := xattrio.Target{FD: fd, Name: e.Cname()}
	w.name.Store(t.Name)
	if w.m.Asks || w.m.LeftInodes[e.Ino] {
		if o, is := w.left(t, d, t); is {
			w.tally.count(o)
			return
		}
	}
	if e.Kind == sys.KindUnknown {
		if st, errno := t.Stat(); errno == 0 {
			e.Kind = st.Kind
		} // else labelling it will say what is wrong with it
	}
	if e.Kind == sys.KindDir {
		if d.rereading && w.rightAlready(t) {
			return
		}
		w.tally.found++
		w.cache.expect(d)
		w.pool.Push(item{dir: d, name: string(e.Name[:len(e.Name)+1])})
		return
	}
	o := w.label(t, d)
	if d.rereading && (o == right || o == vanished) {
		return // counted when it was read first
	}
	w.tally.count(o)
}

// fill reads as many records of d as the buffer holds, and says if there may
// be more. Only a reading of nothing is the end.
func (w *worker) fill(d *dir, fd int) (n int, more bool) {
	n, more = w.refill(d, fd, 0, 0)
	if d.labelledBelow > 0 {
		n = len(order.DropBelow(w.buf[:n], d.labelledBelow))
	}
	return n, more
}

// refill is fill after n bytes were read, and e was answered.
func (w *worker) refill(d *dir, fd, n int, e sys.Errno) (int, bool) {
	w.now(xattrio.Getdents64)
	for try := 0; len(w.buf)-n >= sys.RecordMax; {
		got := 0
		if e == 0 {
			got, e = sys.Getdents(fd, w.buf[n:])
		}
		switch {
		case e == syscall.EINVAL && n > 0:
			return n, true // too little room for the next record
		case xattrio.Judge(e) == xattrio.Gone:
			return n, false // the directory itself was removed
		case xattrio.Judge(e) == xattrio.Again && try < tries && !w.stopped():
			pause(try)
			try++
			e = 0
			continue
		case e != 0:
			w.spoil(d, "getdents64", e)
			return n, false
		case got == 0:
			return n, false
		}
		n += got
	}
	return n, true
}

// left says whether what, which is t or t opened, is to be left alone: excluded,
// or lying under a mount, where only a clone shows it.
func (w *worker) left(what xattrio.Target, d *dir, t xattrio.Target) (outcome, bool) {
	if len(w.m.Left) == 0 {
		return 0, false
	}
	w.now(xattrio.Statx)
	st, e := what.Stat()
	why, is := w.m.Left[mounts.IDOf(st)]
	switch {
	case e != 0 || !is:
		return 0, false
	case why == "":
		return elsewhere, true
	}
	return w.leave(d, t, why), true
}

// rightAlready tells, on the second reading of the root, whether a directory
// needs no second visit.
func (w *worker) rightAlready(t xattrio.Target) bool {
	if _, errno := w.io.Hold(t); errno != 0 {
		return false
	}
	defer w.io.Release(t)
	has, _, errno := w.io.Read(t)
	return errno == 0 && has.Is(w.want)
}

// stopped says that the item at hand had better be finished soon. Outside the
// pool there is nothing to stop.
func (w *worker) stopped() bool { return w.pool != nil && w.pool.Stopped() }

// halt stops the run, and returns when the pool knows.
func (w *worker) halt(why error) {
	if w.pool == nil {
		return
	}
	w.stop(why)
	for !w.pool.Stopped() {
		runtime.Gosched()
	}
}

// at tells where this worker is.
func (w *worker) at(d *dir, name *byte) {
	w.in.Store(d)
	w.name.Store(name)
}

// pause waits before try number try+1: 1 ms, 2, 4 …
func pause(try int) { time.Sleep(time.Millisecond << try) }
