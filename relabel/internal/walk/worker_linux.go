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
	"github.com/fastlabel/fastlabel/relabel/internal/rows"
	"github.com/fastlabel/fastlabel/relabel/internal/steal"
	"github.com/fastlabel/fastlabel/relabel/internal/sys"
	"github.com/fastlabel/fastlabel/relabel/internal/xattrio"
)

// item is a piece of work on dir.
type item struct {
	kind      kind
	dir       *Dir
	name      string // of the directory to enter, with its NUL
	gathering *gathering
	slice     order.Slice
	records   []byte
}

// kind says what is to be done.
type kind uint8

const (
	readRest     kind = iota // dir is open: read on from where it stands
	readAnew                 // dir, from its beginning
	enterDir                 // name in dir
	labelRecords             // records of dir, which another worker has read
	gatherRange
	helpRead
	labelSlice
)

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
	// attrsMost is how many labels a worker keeps ready for writing, in 4 KiB each.
	attrsMost = 32
	// sickAfter EIOs in a row, with nothing that succeeded between, end the
	// run: reading the rest of a dying disk takes days and helps no one.
	sickAfter = 128
)

// worker is one goroutine's share of the walk. All of it belongs to that goroutine but
// for the position, and what counts shows.
type worker struct {
	*Walk
	pool    *steal.Worker[item] // nil: see solo
	solo    *solo               // nil: there is a pool, or one entry
	io      xattrio.IO
	writing string               // the label that io writes
	attrs   map[string]*sys.Attr // for labels that were written

	counts
	streaks
	buffers
	openDirs
	choosing
	position
	sinceYield int                     // entries since others had a turn
	throttle   func(entries int) error // nil: the work is not held back
}

// counts are what a worker has met. Others see them as they were when the last row
// began.
type counts struct {
	tally    Tally
	passed   atomic.Int64 // entries met, but for those of the row at hand
	countsMu sync.Mutex
	shown    Tally
}

// streaks are what a worker goes by when it writes unread, or gives up.
type streaks struct {
	wrongStreak int
	sinceGuess  int // entries since the walk began to guess
	eios        int // in a row
}

// push makes work of it, which w is the first to take.
func (w *worker) push(it item) {
	if w.solo != nil {
		w.solo.rest = append(w.solo.rest, it)
		return
	}
	w.pool.Push(it)
	w.hire(w.pool)
}

// give makes work of it, which w is the last to take.
func (w *worker) give(it item) {
	w.pool.Give(it)
	w.hire(w.pool)
}

func (w *worker) do(it item) {
	if it.kind != enterDir || w.held.dir != it.dir {
		w.held.release(&w.cache)
	}
	if it.kind != enterDir {
		w.closeVisited()
	}
	switch it.kind {
	case readRest:
		w.cache.beginRest()
		if !w.queueRest(it.dir) {
			w.scan(it.dir, it.dir.FD())
		}
		w.cache.release(it.dir)
	case readAnew:
		w.anew(it.dir)
	case enterDir:
		w.tally.Entered++
		w.enter(it.dir, it.name)
	case labelRecords:
		w.finish(it.dir, it.records)
	case gatherRange:
		w.gather(it.gathering)
	case helpRead:
		w.help(it.gathering)
	case labelSlice:
		w.labelSlice(it.gathering, it.slice)
	}
	w.in.Store(nil)
	w.items.Add(1)
	w.passed.Store(w.tally.Seen)
	w.countsMu.Lock()
	w.shown = w.tally
	w.countsMu.Unlock()
}

// finish labels the entries of d that are in records.
func (w *worker) finish(d *Dir, records []byte) {
	w.at(d, nil)
	fd, op, e := w.cache.acquire(d)
	switch {
	case xattrio.Judge(e) == xattrio.Gone: // with all that was in it
		return
	case e != 0:
		w.spoil(d, op, e)
		return
	}
	w.records(d, fd, records)
	w.cache.release(d)
}

// anew reads d from its beginning.
func (w *worker) anew(d *Dir) {
	w.at(d, nil)
	fd, op, e := w.cache.acquire(d)
	if e == 0 {
		defer w.cache.release(d)
		op, e = "lseek", sys.Rewind(fd, 0)
	}
	switch {
	case e == 0:
		w.scan(d, fd)
	case xattrio.Judge(e) != xattrio.Gone:
		w.spoil(d, op, e)
	}
}

// scan reads one buffer of d, gives the rest of d to a worker that is free, and
// labels what it has read.
func (w *worker) scan(d *Dir, fd int) {
	w.at(d, nil)
	n, more := w.fill(d, fd)
	w.share(d, fd, n, more)
}

// share gives the rest of d, if there is more of it, and labels the n bytes of
// records that were read.
func (w *worker) share(d *Dir, fd, n int, more bool) {
	if w.solo != nil {
		if more {
			w.solo.large = true
			w.cache.expect(d)
			w.push(item{kind: readAnew, dir: d})
			return
		}
		w.records(d, fd, w.buf[:n])
		return
	}
	if more {
		var taken bool
		if n, taken = w.queueSampled(d, fd, n); taken || w.fillWindow(d, fd, n) {
			return
		}
		if w.cache.pinRest(d) {
			w.give(item{dir: d})
		} else {
			// So many rests wait that this one comes next, before the
			// directories in it: memory rather than descriptors.
			defer w.push(item{dir: d})
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
	pieces := rows.Pieces(w.buf[:n], piece)
	last := len(pieces) - 1
	for _, records := range pieces[:last] {
		w.cache.expect(d)
		w.push(item{kind: labelRecords, dir: d, records: records})
	}
	if last > 0 {
		w.equip() // the buffer is shared by now
	}
	w.records(d, fd, pieces[last])
}

// entry labels one entry of d, or makes work of it if it is a directory.
func (w *worker) entry(d *Dir, fd int, e sys.Dirent) {
	t := xattrio.Target{FD: fd, Name: e.Cname(), Kind: e.Kind, Ino: e.Ino}
	w.name.Store(t.Name)
	if w.m.Asks || w.m.LeftInodes[e.Ino] {
		if o, is := w.left(t, d, t); is {
			w.tally.Count(o)
			return
		}
	}
	if e.Kind == sys.KindUnknown {
		if st, errno := t.Stat(); errno == 0 {
			e.Kind, t.Kind = st.Kind, st.Kind
		} // else labelling it will say what is wrong with it
	}
	if e.Kind == sys.KindDir {
		if d.rereading && w.rightAlready(d, t) {
			return
		}
		w.tally.Found++
		w.cache.expect(d)
		w.push(item{kind: enterDir, dir: d, name: string(e.Name[:len(e.Name)+1])})
		return
	}
	o := w.label(t, d)
	if d.rereading && (o == Right || o == Vanished) {
		return // counted when it was read first
	}
	w.tally.Count(o)
}

// fill reads as many records of d as the buffer holds, and says if there may
// be more. Only a reading of nothing is the end.
func (w *worker) fill(d *Dir, fd int) (n int, more bool) {
	w.askAhead(d, fd)
	n, more = w.refill(d, fd, 0, 0, nil)
	if d.labelledBelow > 0 {
		n = len(order.DropBelow(w.buf[:n], d.labelledBelow))
	}
	return n, more
}

// askAhead asks, once, for what is to be read of d.
func (w *worker) askAhead(d *Dir, fd int) {
	if w.readsAhead() && !d.ahead {
		d.ahead = true
		w.ahead.ask(w.m, fd, w.now)
	}
}

// readsAhead says whether what is near a directory is asked for with it.
func (w *worker) readsAhead() bool { return w.m.Sorts && w.ahead.pays() }

// refill is fill after n bytes were read, and e was answered. It ends with s, if that is
// not nil.
func (w *worker) refill(d *Dir, fd, n int, e sys.Errno, s *order.Stretch) (int, bool) {
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
		w.items.Add(1)
		records := w.buf[n : n+got]
		if s != nil {
			records = s.Cut(records)
		}
		if n += len(records); s != nil && s.Ended() {
			return n, false
		}
	}
	return n, true
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
	if w.solo != nil && !d.rereading { // what is mounted in it is named too
		w.otherMount(d, t)
		return Elsewhere, true
	}
	return w.leave(d, t, why), true
}

// rightAlready tells, on the second reading of the root, whether a directory
// needs no second visit.
func (w *worker) rightAlready(d *Dir, t xattrio.Target) bool {
	if _, errno := w.io.Hold(t); errno != 0 {
		return false
	}
	defer w.io.Release(t)
	has, _, errno := w.io.Read(t)
	return errno == 0 && has.Is(d.want.Label)
}

// ready has the worker write label, until another is to be written.
func (w *worker) ready(label string) {
	if label == w.writing && w.io.Attr != nil {
		return
	}
	if w.writing = label; w.attrs[label] == nil {
		if w.attrs == nil || len(w.attrs) == attrsMost {
			w.attrs = map[string]*sys.Attr{}
		}
		w.attrs[label] = sys.NewAttr(xattrio.Attribute, []byte(label))
	}
	w.io.Attr = w.attrs[label]
	if w.Events.Changed == nil && w.Change == nil {
		w.io.Brief() // what an entry had is only compared
	} else {
		w.io.Wide()
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
		return w.solo != nil && w.solo.ctx.Err() != nil
	}
	return w.pool.Stopped()
}

// halt stops the run, and returns when the pool knows.
func (w *worker) halt(why error) {
	if w.pool == nil {
		if w.solo != nil {
			w.Stop(why)
		}
		return
	}
	w.Stop(why)
	for !w.pool.Stopped() {
		runtime.Gosched()
	}
}

// pause waits before try number try+1: 1 ms, 2, 4 …
func pause(try int) { time.Sleep(time.Millisecond << try) }
