// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fastlabel/fastlabel/relabel/internal/steal"
	"github.com/fastlabel/fastlabel/relabel/internal/sys"
)

// item is a piece of work: a directory to enter, which is name in dir; a slice
// of a sorted batch; records of dir that were read; or with none of these, the
// rest of a directory that is open.
type item struct {
	dir   *dir
	name  string // with its NUL
	batch *batch
	from  int    // where in the batch the slice begins
	rest  []byte // records that another worker had read, but was held up
}

const (
	// bufferSize is one reading of a directory, and so the largest piece of
	// work: some 2,000 names, 5 ms of labelling.
	bufferSize = 64 << 10
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
	pool  *steal.Worker[item]
	m     *mount
	hand  hand
	buf   []byte
	tally tally
	row   int // wrong labels in a row
	turn  int // entries since the walk began to guess
	eios  int // EIOs in a row

	// Shared with whoever asks how far the worker is, or where it hangs.
	in     atomic.Pointer[dir] // nil while it has nothing to do
	name   atomic.Pointer[byte]
	doing  atomic.Uint32 // a deed
	items  atomic.Uint64 // worked on so far
	chunk  atomic.Pointer[chunk]
	heldUp atomic.Bool
	mu     sync.Mutex
	shown  tally

	// Belongs to attend.
	watch    watch
	relieved bool
}

func (w *worker) do(it item) {
	switch {
	case it.batch != nil:
		w.slice(it.batch, it.from)
	case it.rest != nil:
		w.finish(it.dir, it.rest)
	case it.name != "":
		w.enter(it.dir, it.name)
	case !w.gather(it.dir):
		w.cache.kept()
		w.scan(it.dir, int(it.dir.fd))
		w.cache.release(it.dir)
	}
	w.in.Store(nil)
	w.items.Add(1)
	w.met(w.tally.seen - w.shown.seen)
	w.mu.Lock()
	w.shown = w.tally
	w.mu.Unlock()
}

// now says which call comes next, if it is another than the last.
func (w *worker) now(d deed) {
	if w.doing.Load() != uint32(d) {
		w.doing.Store(uint32(d))
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

// enter labels the directory name in parent and starts on its entries. The
// label comes first: what is created in it from then on inherits.
func (w *worker) enter(parent *dir, name string) {
	t := target{name: sys.Cname(name[:len(name)-1])}
	w.at(parent, t.name)
	w.now(w.m.opening())
	at, op, e := w.cache.acquire(parent)
	if e != 0 {
		w.tally.count(w.fail(parent, t, op, e))
		return
	}
	t.fd = at
	defer w.cache.release(parent)

	fd, op, e := w.open(t)
	switch {
	case e == errNotDir:
		w.tally.count(w.leaf(parent, t))
		return
	case e != 0:
		w.tally.count(w.closed(parent, t, op, e))
		return
	}
	if o, is := w.left(target{fd: fd}, parent, t); is {
		sys.Close(fd)
		w.tally.count(o)
		return
	}
	d := &dir{parent: parent, mount: parent.mount, name: name, deep: parent.deep + 1, fd: -1}
	w.cache.pinned(d, fd)
	d.outcome = w.label(target{fd: fd}, d)
	d.spoiled = d.outcome == failure
	w.tally.count(d.outcome)
	w.scan(d, fd)
	w.cache.release(d)
}

// open opens the directory t. ENOTDIR means that it is none any more; where
// that was answered of what is a directory, as when it is exchanged to and fro
// faster than it can be opened, the error is ELOOP.
func (w *worker) open(t target) (fd int, op string, e sys.Errno) {
	w.now(w.m.opening())
	for try := 0; ; try++ {
		fd, op, e = w.m.openDir(t.fd, t.name)
		v := judge(e)
		if v == changed {
			if st, e := t.stat(); e == 0 && st.Kind != sys.KindDir {
				return -1, op, errNotDir
			}
			e = errLoop
		}
		bare := v == foreign && w.mountOver(t) == w.m.id
		if v != again && v != changed && !bare || try == tries || w.stopped() {
			return fd, op, e
		}
		if !w.cache.shed() {
			pause(try)
		}
	}
}

// closed deals with a directory that could not be opened.
func (w *worker) closed(parent *dir, t target, op string, e sys.Errno) outcome {
	switch judge(e) {
	case gone:
		if parent.again {
			return elsewhere // counted when it was read first, if it was
		}
		return vanished
	case foreign:
		if id := w.mountOver(t); id != w.m.id {
			return w.mountedOver(parent, t, id)
		}
	}
	// It may be given its label all the same. That what is in it could not
	// be read is a failure either way, and reported once.
	if _, e := w.hand.enter(t.fd); e == 0 {
		w.attempt(t, parent)
	}
	return w.fail(parent, t, op, e)
}

// leaf labels t, whatever it has become, without looking beneath it.
func (w *worker) leaf(parent *dir, t target) outcome {
	if op, e := w.hand.enter(t.fd); e != 0 {
		return w.fail(parent, t, op, e)
	}
	return w.label(t, parent)
}

// scan reads one buffer of d, gives the rest of d to whoever is free, and
// labels what it has read.
func (w *worker) scan(d *dir, fd int) {
	w.at(d, nil)
	n, more := w.fill(d, fd)
	if more {
		if w.cache.keep(d) {
			w.pool.Give(item{dir: d})
		} else {
			// So many rests wait that this one comes next, before the
			// directories in it: memory rather than descriptors.
			defer w.pool.Push(item{dir: d})
		}
	}
	w.records(d, fd, w.buf[:n])
}

// records labels the entries of d in buf, unless it is relieved of them.
func (w *worker) records(d *dir, fd int, buf []byte) {
	if op, e := w.hand.enter(fd); e != 0 {
		w.spoil(d, op, e)
		return
	}
	c := w.chunk.Load()
	c.dir, c.buf = d, buf
	c.next.Store(0)
	off := 0
	for off < len(buf) && !w.stopped() {
		e, length, err := sys.Parse(buf[off:])
		if err != nil {
			w.spoil(d, "getdents64", err)
			break
		}
		if !c.take(off, length) {
			break
		}
		off += length
		if !sys.IsDot(e.Name) {
			w.entry(d, fd, e)
		}
	}
	if !c.end(off) {
		w.equip() // the buffer is another's now
	}
}

// equip gives the worker a buffer, and a chunk to go through it.
func (w *worker) equip() {
	w.buf = make([]byte, bufferSize)
	c := &chunk{}
	c.next.Store(closed)
	w.chunk.Store(c)
}

// entry labels one entry of d, or makes work of it if it is a directory.
func (w *worker) entry(d *dir, fd int, e sys.Dirent) {
	t := target{fd: fd, name: e.Cname()}
	w.name.Store(t.name)
	if w.m.asks || w.m.special[e.Ino] {
		if o, is := w.left(t, d, t); is {
			w.tally.count(o)
			return
		}
	}
	if e.Kind == sys.KindUnknown {
		if st, errno := t.stat(); errno == 0 {
			e.Kind = st.Kind
		} // else labelling it will say what is wrong with it
	}
	if e.Kind == sys.KindDir {
		if d.again && w.rightAlready(t) {
			return
		}
		w.cache.expect(d)
		w.pool.Push(item{dir: d, name: string(e.Name[:len(e.Name)+1])})
		return
	}
	o := w.label(t, d)
	if d.again && (o == right || o == vanished) {
		return // counted when it was read first
	}
	w.tally.count(o)
}

// fill reads as many records of d as the buffer holds, and says if there may
// be more. Only a reading of nothing is the end.
func (w *worker) fill(d *dir, fd int) (n int, more bool) {
	w.now(reading)
	for try := 0; len(w.buf)-n >= sys.RecordMax; {
		got, e := sys.Getdents(fd, w.buf[n:])
		switch {
		case e == errNoRoom && n > 0:
			return n, true
		case e != 0 && judge(e) == gone:
			return n, false // the directory itself was removed
		case e != 0 && judge(e) == again && try < tries && !w.stopped():
			pause(try)
			try++
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
func (w *worker) left(what target, d *dir, t target) (outcome, bool) {
	if len(w.m.left) == 0 {
		return 0, false
	}
	w.now(asking)
	st, e := what.stat()
	why, is := w.m.left[identify(st)]
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
func (w *worker) rightAlready(t target) bool {
	if _, errno := w.hand.take(t); errno != 0 {
		return false
	}
	defer w.hand.drop(t)
	n, _, errno := w.hand.get(t)
	return errno == 0 && sameLabel(w.hand.Value(n), w.want)
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
