// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"sync"
	"sync/atomic"

	"github.com/fastlabel/fastlabel/relabel/internal/order"
	"github.com/fastlabel/fastlabel/relabel/internal/sys"
	"github.com/fastlabel/fastlabel/relabel/internal/xattrio"
)

// A worker that meets a large directory with wrong labels (package order) gathers its
// entries, sorts them, and gives out slices, in several readings of the directory
// if they do not fit into the budget. Where a range cannot be made to fit, since
// hard links give a few inodes more names than the budget holds, or where a
// directory would be read too often, what is left of it is labelled as it lies.
// One directory is gathered at a time, so that the budget holds for the run; others
// wait in a queue, and no worker waits for them. In the queue a directory is like
// any that will be needed again: the cache may close it. It is then found again by
// name; if it was renamed or removed by then, it is a failure and named.
//
// Where labels are right, one worker labels a window while another fills the next; nothing
// is read twice. What fits into one buffer is put in order there.
//
// Who owns what: a gathering belongs to the worker that took it. Others may join to read;
// then it belongs to the last that leaves. It is then shared, and only read, by the workers
// on its slices, and belongs to the one whose slice is the last to be done, which gathers
// the next range or frees it. The pool's deques hand over, and the counters of readers and
// of slices (package order).

const (
	// sortedFrom is how many bytes of records in one buffer are worth it: 16 entries
	// with short names.
	sortedFrom = 16 * 24
	// windowBudget is for some 75,000 names of 32 bytes, a million of which are
	// read within 3 % of the time that one order of them all takes.
	windowBudget = 3 << 20
)

// gathering is memory for entries, and the directory, pinned, that they are in.
type gathering struct {
	taken     atomic.Bool
	batch     *order.Batch
	dir       *Dir
	stretches int // of a reading, at most

	// While there are readers, mu guards the batch too. From the last leave to the next
	// reading nothing is left, so a reader that comes late does not join, whatever the
	// gathering is used for by then.
	mu      sync.Mutex
	left    []order.Stretch // which no reader has begun
	readers int
}

// gatherings are what a walk has to put directories in order, and the directories that wait
// for it. Where both windows are in use, a directory is labelled as it lies.
type gatherings struct {
	mu      sync.Mutex
	queue   []*Dir // the last is next: it is the most likely to be open
	whole   gathering
	windows [2]gathering
}

// next takes the memory for a directory that waits. It returns nil if there is none, or
// another is gathered.
func (s *gatherings) next() *gathering {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := len(s.queue) - 1
	if last < 0 || !s.whole.taken.CompareAndSwap(false, true) {
		return nil
	}
	s.whole.dir, s.queue = s.queue[last], s.queue[:last]
	return &s.whole
}

// clear releases the directories whose gathering a stopped walk left.
func (s *gatherings) clear(c *dirCache) {
	for _, g := range []*gathering{&s.whole, &s.windows[0], &s.windows[1]} {
		if g.taken.Load() {
			c.release(g.dir)
		}
	}
}

// join makes the caller a reader, if a stretch is left.
func (g *gathering) join() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.left) == 0 {
		return false
	}
	g.readers++
	return true
}

// stretch returns what a reader reads next. There is none once the range does not fit.
func (g *gathering) stretch() (s order.Stretch, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.left) == 0 || !g.batch.Fits() {
		return s, false
	}
	s, g.left = g.left[0], g.left[1:]
	return s, true
}

// add adds what a reader has read, and reports whether the range fits.
func (g *gathering) add(records []byte) (fits bool, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	err = g.batch.Add(records)
	return g.batch.Fits(), err
}

// leave reports whether the caller was the last reader. If so, no other joins.
func (g *gathering) leave() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.readers--; g.readers > 0 {
		return false
	}
	g.left = nil
	return true
}

// byInode reports whether the entries of d are put in the order of inodes.
func (w *worker) byInode(d *Dir) bool {
	return w.m.Kind == sys.Ext4 && !d.rereading && w.Kernel.Sorting.From > 0
}

// isLarge reports whether the order in which all of d is labelled may make a difference.
func (w *worker) isLarge(d *Dir) bool {
	if d.asListed || !w.byInode(d) {
		return false
	}
	st, e := sys.Fstatx(d.FD())
	d.asListed = e != 0 || st.Size < w.Kernel.Sorting.From
	return !d.asListed
}

// queueSampled labels the first few of the n bytes of records in the buffer, if the
// rest of d may be worth gathering, and queues that if they are wrong: a buffer that
// is written as it comes is 2,000 names all over the inode table. It returns how
// many bytes are left.
func (w *worker) queueSampled(d *Dir, fd, n int) (left int, waits bool) {
	if w.Writes == DryRun || !w.isLarge(d) {
		return n, false
	}
	end, last, err := firstOf(w.buf[:n], guessAfter, func(e sys.Dirent) bool { return isPlain(e, w.m.LeftInodes) && !sys.IsDot(e.Name) })
	if err != nil {
		return n, false // records reports it
	}
	w.records(d, fd, w.buf[:end:end])
	if w.wrongStreak < guessAfter || w.stopped() {
		return copy(w.buf, w.buf[end:n]), false
	}
	d.gathersFrom = sys.After(w.buf[last:])
	w.cache.expect(d)
	w.sorts.mu.Lock()
	w.sorts.queue = append(w.sorts.queue, d)
	w.sorts.mu.Unlock()
	w.gatherNext()
	return 0, true
}

// gatherNext makes work of a directory that waits, if nothing else is gathered.
func (w *worker) gatherNext() {
	for !w.stopped() {
		g := w.sorts.next()
		if g == nil {
			return
		}
		w.at(g.dir, nil)
		w.now(w.opens())
		if _, op, e := w.cache.acquire(g.dir); e != 0 {
			w.spoil(g.dir, op, e)
			g.taken.Store(false)
			continue
		}
		st, _ := sys.Fstatx(g.dir.FD()) // else it gets the least
		budget, stretches := w.Kernel.Sorting.Room(st.Size)
		g.batch, g.stretches = g.batch.Begin(budget), min(stretches, 2*w.most)
		w.push(item{do: func(w *worker) { w.gather(g) }})
		return
	}
}

// gather reads the directory, with idle workers, keeps what fits of the next range, and
// makes work of it.
func (w *worker) gather(g *gathering) {
	d := g.dir
	w.at(d, nil)
	w.askAhead(d, d.FD())
	g.batch.Next()
	stretches := order.Divide(d.gathersFrom, g.stretches)
	if sys.Rewind(d.FD(), stretches[len(stretches)-1].At) != 0 {
		stretches = order.Divide(d.gathersFrom, 1) // no index: positions are offsets
	}
	g.mu.Lock()
	g.left, g.readers = stretches, 1
	g.mu.Unlock()
	for range len(stretches) - 1 {
		w.push(item{do: func(w *worker) { w.help(g) }})
	}
	w.read(g, d.FD())
}

// help joins the reading of g's directory, whichever that is by now. It does nothing if
// no stretch is left.
func (w *worker) help(g *gathering) {
	if !g.join() {
		return
	}
	w.at(g.dir, nil)
	w.now(w.opens())
	fd, _, e := w.m.OpenDir(g.dir.FD(), itself)
	if e != 0 { // no failure: the other readers take its stretches
		w.doneReading(g)
		return
	}
	w.read(g, fd)
	sys.Close(fd)
}

var itself = sys.Cname(".")

// read reads stretches by fd until none is left.
func (w *worker) read(g *gathering, fd int) {
	for s, ok := g.stretch(); ok; s, ok = g.stretch() {
		fits, more, e := true, true, w.begin(&s, fd)
		if e != 0 {
			w.spoil(g.dir, "lseek", e)
		}
		for more && fits && e == 0 && !s.Ended() && !w.stopped() {
			var n int
			n, more = w.getdents(g.dir, fd, 0)
			var err error
			if fits, err = g.add(s.Cut(w.buf[:n])); err != nil {
				w.spoil(g.dir, "getdents64", err)
			}
		}
	}
	w.doneReading(g)
}

// begin seeks to s. The first name at or after s.At may lie beyond s.To: a getdents64
// with a buffer too small for any name leaves the position at that name.
func (w *worker) begin(s *order.Stretch, fd int) sys.Errno {
	if e := sys.Rewind(fd, s.At); e != 0 {
		return e
	}
	w.now(xattrio.Getdents64)
	_, _ = sys.Getdents(fd, w.buf[:1]) // EINVAL
	at, e := sys.Tell(fd)
	s.At = max(s.At, at)
	return e
}

// doneReading makes work of what was kept, once the last reader leaves.
func (w *worker) doneReading(g *gathering) {
	if !g.leave() {
		return
	}
	if g.batch.Fits() {
		w.giveSlices(g)
		return
	}
	d := g.dir
	if e := sys.Rewind(d.FD(), d.gathersFrom); e != 0 {
		w.spoil(d, "lseek", e)
	} else {
		d.asListed = true
		d.labelledBelow = g.batch.From()
		w.cache.pinRest(d)
		w.push(restOf(d))
	}
	w.gathered(g)
}

// giveSlices makes work of what was gathered.
func (w *worker) giveSlices(g *gathering) {
	count := 0
	w.unwatched(func() { count = g.batch.Sort() }) // six million names take half a second
	if count == 0 {
		w.gathered(g) // it was all removed during the run
		return
	}
	// The lowest is pushed last, and so comes first.
	for i := count - 1; i >= 0; i-- {
		s := g.batch.Slice(i)
		w.push(item{do: func(w *worker) {
			w.at(g.dir, nil)
			w.inOrder(g.dir, g.dir.FD(), s)
			if s.Done() {
				w.gathered(g)
			}
		}})
	}
}

// inOrder labels the entries of a slice of d.
func (w *worker) inOrder(d *Dir, fd int, s order.Slice) {
	for !w.stopped() {
		records := s.Next(w.buf)
		if len(records) == 0 {
			return
		}
		w.records(d, fd, records)
	}
}

// gathered continues when all that g holds was labelled: with the next range, or with
// another directory.
func (w *worker) gathered(g *gathering) {
	if g.batch.Fits() && g.batch.More() && !w.stopped() {
		w.push(item{do: func(w *worker) { w.gather(g) }})
		return
	}
	d := g.dir
	g.taken.Store(false)
	w.cache.release(d)
	w.gatherNext()
}

// fillWindow takes the rest of d over, of which n bytes of records are in the
// buffer, if its order matters and there is memory for it.
func (w *worker) fillWindow(d *Dir, fd, n int) bool {
	if !w.byInode(d) || w.wrong.Load() && w.isLarge(d) {
		return false
	}
	g := &w.sorts.windows[0]
	if !g.taken.CompareAndSwap(false, true) {
		if g = &w.sorts.windows[1]; !g.taken.CompareAndSwap(false, true) {
			return false
		}
	}
	g.dir = d
	g.batch = g.batch.Begin(min(windowBudget, max(w.Kernel.Sorting.Budget, bufferSize)))
	w.cache.pin(d)
	more := true
	for {
		if err := g.batch.Put(w.buf[:n]); err != nil {
			w.spoil(d, "getdents64", err)
		}
		if !more || w.stopped() || !g.batch.Room(bufferSize) {
			break
		}
		n, more = w.fill(d, fd, 0)
	}
	if more && w.cache.pinRest(d) {
		w.give(restOf(d))
	} else if more {
		defer w.push(restOf(d))
	}
	w.giveSlices(g)
	return true
}

// labelBuffer labels the n bytes of records in the buffer, in the order of inodes if
// that matters.
func (w *worker) labelBuffer(d *Dir, fd, n int) {
	if !w.byInode(d) || n < sortedFrom {
		w.records(d, fd, w.buf[:n])
		return
	}
	b := w.ordered.Begin(n)
	w.ordered = b
	if b.Put(w.buf[:n]) != nil || b.InOrder() {
		w.records(d, fd, w.buf[:n]) // which reports what is malformed
		return
	}
	for i := range b.Sort() {
		w.inOrder(d, fd, b.Slice(i))
	}
}
