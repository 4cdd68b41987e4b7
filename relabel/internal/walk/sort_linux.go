// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"sync"
	"sync/atomic"

	"github.com/fastlabel/fastlabel/relabel/internal/order"
	"github.com/fastlabel/fastlabel/relabel/internal/sys"
	"github.com/fastlabel/fastlabel/relabel/internal/xattrio"
)

// A worker that finds a large directory with wrong labels (package order) gathers its
// entries, sorts them, and makes work of ranges of them, in several readings of the directory
// if they do not fit into the budget. Where a range cannot be made to fit, since
// hard links give a few inodes more names than the budget has room for, or where a
// directory would be read too often, what is left of it is labelled as it lies.
// One directory is gathered at a time, so that the budget is enough for the run; others
// wait in a queue, and no worker waits for them. In the queue a directory is like
// any that will be needed again: the cache may close it. It is then found again by
// name; if it was renamed or removed by then, it is a failure and named.
//
// Where labels are right, one worker labels a part while another reads the next; nothing
// is read twice. What fits into one buffer is put in order there.
//
// Who owns what: a sortedDir belongs to the worker that took it. Others may join to read;
// then it belongs to the last that leaves. It is then shared, and only read, by the workers
// on its ranges, and belongs to the one whose range is the last to be done, which gathers
// the next part or frees it. The pool's deques, and the counters of readers and of ranges
// (package order), order that.

const (
	// sortedFrom is how many bytes of entries in one buffer are worth it: 16 entries
	// with short names.
	sortedFrom = 16 * 24
	// partBudget is for some 75,000 names of 32 bytes, a million of which are
	// read within 3 % of the time that one order of them all takes.
	partBudget = 3 << 20
)

// sortedDir is memory for entries, and the directory, pinned, that they are in.
type sortedDir struct {
	taken   atomic.Bool
	batch   *order.Batch
	dir     *Dir
	readers int // at most

	// While there are readers, mu guards the batch too. From the last leave to the next
	// reading nothing is left, so a reader that comes late does not join, whatever the
	// memory is used for by then.
	mu      sync.Mutex
	left    []order.Stretch // which no reader has begun
	reading int             // readers
}

// sorter is what a walk has to put directories in order, and the directories that wait
// for it. Where both parts are in use, a directory is labelled as it lies.
type sorter struct {
	mu    sync.Mutex
	queue []*Dir // the last is next: it is the most likely to be open
	whole sortedDir
	parts [2]sortedDir // of directories that are not read again
}

// next takes the memory for a directory that waits. It returns nil if there is none, or
// another is gathered.
func (s *sorter) next() *sortedDir {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := len(s.queue) - 1
	if last < 0 || !s.whole.taken.CompareAndSwap(false, true) {
		return nil
	}
	s.whole.dir, s.queue = s.queue[last], s.queue[:last]
	return &s.whole
}

// clear releases the directories that a stopped walk left.
func (s *sorter) clear(c *dirCache) {
	for _, g := range []*sortedDir{&s.whole, &s.parts[0], &s.parts[1]} {
		if g.taken.Load() {
			c.release(g.dir)
		}
	}
}

// join makes the caller a reader, if a stretch is left.
func (g *sortedDir) join() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.left) == 0 {
		return false
	}
	g.reading++
	return true
}

// stretch returns what a reader reads next. There is none once the range does not fit.
func (g *sortedDir) stretch() (s order.Stretch, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.left) == 0 || !g.batch.Fits() {
		return s, false
	}
	s, g.left = g.left[0], g.left[1:]
	return s, true
}

// add adds what a reader has read, and reports whether the range fits.
func (g *sortedDir) add(entries []byte) (fits bool, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	err = g.batch.Add(entries)
	return g.batch.Fits(), err
}

// leave reports whether the caller was the last reader. If so, no other joins.
func (g *sortedDir) leave() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.reading--; g.reading > 0 {
		return false
	}
	g.left = nil
	return true
}

// byInode reports whether the entries of d are put in the order of inodes.
func (w *worker) byInode(d *Dir) bool {
	return w.mount.Kind == sys.Ext4 && !d.rereading && w.walk.job.Kernel.Sorting.From > 0
}

// isLarge reports whether the order in which all of d is labelled may make a difference.
func (w *worker) isLarge(d *Dir) bool {
	if d.unsorted || !w.byInode(d) {
		return false
	}
	st, e := sys.Fstatx(d.FD())
	d.unsorted = e != 0 || st.Size < w.walk.job.Kernel.Sorting.From
	return !d.unsorted
}

// sample labels the first few of the n bytes of entries in the buffer, if the
// rest of d may be worth gathering, and queues that if they are wrong: a buffer that
// is written as it comes is 2,000 names all over the inode table. It returns how
// many bytes are left.
func (w *worker) sample(d *Dir, fd, n int) (left int, queued bool) {
	if w.walk.job.Writes == DryRun || !w.isLarge(d) {
		return n, false
	}
	end, last, err := firstOf(w.buf[:n], guessAfter, func(e sys.Dirent) bool { return isPlain(e, w.mount.LeftInodes) && !sys.IsDot(e.Name) })
	if err != nil {
		return n, false // entries reports it
	}
	w.entries(d, fd, w.buf[:end:end])
	if w.labels.wrong < guessAfter || w.queue.Stopped() {
		return copy(w.buf, w.buf[end:n]), false
	}
	d.sortFrom = sys.After(w.buf[last:])
	w.cache.expect(d)
	s := &w.walk.sorter
	s.mu.Lock()
	s.queue = append(s.queue, d)
	s.mu.Unlock()
	w.gatherNext()
	return 0, true
}

// gatherNext makes work of a directory that waits, if nothing else is gathered.
func (w *worker) gatherNext() {
	for !w.queue.Stopped() {
		g := w.walk.sorter.next()
		if g == nil {
			return
		}
		w.pos.at(g.dir, nil)
		w.pos.now(w.labels.opens())
		if _, op, e := w.cache.acquire(g.dir); e != 0 {
			w.labels.failDir(g.dir, op, e)
			g.taken.Store(false)
			continue
		}
		st, _ := sys.Fstatx(g.dir.FD()) // else it gets the least
		budget, stretches := w.walk.job.Kernel.Sorting.Room(st.Size)
		g.batch, g.readers = g.batch.Begin(budget), min(stretches, 2*w.walk.most)
		w.push(gather{g})
		return
	}
}

// gather is the reading of a directory for the next range of inodes that fits.
type gather struct{ *sortedDir }

func (g gather) do(w *worker) {
	d := g.dir
	w.pos.at(d, nil)
	w.readAhead(d, d.FD())
	g.batch.Next()
	stretches := order.Divide(d.sortFrom, g.readers)
	if sys.Rewind(d.FD(), stretches[len(stretches)-1].At) != 0 {
		stretches = order.Divide(d.sortFrom, 1) // no index: positions are offsets
	}
	g.mu.Lock()
	g.left, g.reading = stretches, 1
	g.mu.Unlock()
	for range len(stretches) - 1 {
		w.push(help(g))
	}
	g.read(w, d.FD())
}

// help joins the reading of a directory, whichever that is by now. It does nothing if
// no stretch is left.
type help struct{ *sortedDir }

func (g help) do(w *worker) {
	if !g.join() {
		return
	}
	w.pos.at(g.dir, nil)
	w.pos.now(w.labels.opens())
	fd, _, e := w.mount.OpenDir(g.dir.FD(), sys.Cname("."))
	if e != 0 { // no failure: the other readers take its stretches
		g.doneReading(w)
		return
	}
	g.read(w, fd)
	sys.Close(fd)
}

// read reads stretches by fd until none is left.
func (g *sortedDir) read(w *worker, fd int) {
	for s, ok := g.stretch(); ok; s, ok = g.stretch() {
		fits, more, e := true, true, w.seek(&s, fd)
		if e != 0 {
			w.labels.failDir(g.dir, "lseek", e)
		}
		for more && fits && e == 0 && !s.Ended() && !w.queue.Stopped() {
			var n int
			n, more = w.getdents(g.dir, fd, 0)
			var err error
			if fits, err = g.add(s.Cut(w.buf[:n])); err != nil {
				w.labels.failDir(g.dir, "getdents64", err)
			}
		}
	}
	g.doneReading(w)
}

// seek seeks to s. The first name at or after s.At may lie beyond s.To: a getdents64
// with a buffer too small for any name leaves the position at that name.
func (w *worker) seek(s *order.Stretch, fd int) sys.Errno {
	if e := sys.Rewind(fd, s.At); e != 0 {
		return e
	}
	w.pos.now(xattrio.Getdents64)
	_, _ = sys.Getdents(fd, w.buf[:1]) // EINVAL
	at, e := sys.Tell(fd)
	s.At = max(s.At, at)
	return e
}

// doneReading makes work of what was gathered, once the last reader leaves.
func (g *sortedDir) doneReading(w *worker) {
	if !g.leave() {
		return
	}
	if g.batch.Fits() {
		g.pushRanges(w)
		return
	}
	d := g.dir
	if e := sys.Rewind(d.FD(), d.sortFrom); e != 0 {
		w.labels.failDir(d, "lseek", e)
	} else {
		d.unsorted = true
		d.sortedBelow = g.batch.From()
		w.cache.pinRest(d)
		w.push(rest{d})
	}
	g.labelled(w)
}

// pushRanges makes work of what was gathered.
func (g *sortedDir) pushRanges(w *worker) {
	count := 0
	w.pos.pause(func() { count = g.batch.Sort() }) // six million names take half a second
	if count == 0 {
		g.labelled(w) // it was all removed during the run
	}
	// The lowest is pushed last, and so comes first.
	for i := count - 1; i >= 0; i-- {
		w.push(&sortedRange{g, g.batch.Slice(i)})
	}
}

// sortedRange is some of the entries of a directory, in order.
type sortedRange struct {
	of    *sortedDir
	slice order.Slice
}

func (r *sortedRange) do(w *worker) {
	d := r.of.dir
	w.pos.at(d, nil)
	w.inOrder(d, d.FD(), r.slice)
	if r.slice.Done() {
		r.of.labelled(w)
	}
}

// inOrder labels the entries of a slice of d.
func (w *worker) inOrder(d *Dir, fd int, s order.Slice) {
	for !w.queue.Stopped() {
		entries := s.Next(w.buf)
		if len(entries) == 0 {
			return
		}
		w.entries(d, fd, entries)
	}
}

// labelled continues when all that was gathered was labelled: with the next range, or with
// another directory.
func (g *sortedDir) labelled(w *worker) {
	if g.batch.Fits() && g.batch.More() && !w.queue.Stopped() {
		w.push(gather{g})
		return
	}
	d := g.dir
	g.taken.Store(false)
	w.cache.release(d)
	w.gatherNext()
}

// sortRest takes the rest of d over, of which n bytes of entries are in the
// buffer, if its order matters and there is memory for it.
func (w *worker) sortRest(d *Dir, fd, n int) bool {
	if !w.byInode(d) || w.walk.wrong.Load() && w.isLarge(d) {
		return false
	}
	g := &w.walk.sorter.parts[0]
	if !g.taken.CompareAndSwap(false, true) {
		if g = &w.walk.sorter.parts[1]; !g.taken.CompareAndSwap(false, true) {
			return false
		}
	}
	g.dir = d
	g.batch = g.batch.Begin(min(partBudget, max(w.walk.job.Kernel.Sorting.Budget, bufferSize)))
	w.cache.pin(d)
	more := true
	for {
		if err := g.batch.Put(w.buf[:n]); err != nil {
			w.labels.failDir(d, "getdents64", err)
		}
		if !more || w.queue.Stopped() || !g.batch.Room(bufferSize) {
			break
		}
		n, more = w.fill(d, fd, 0)
	}
	if more {
		defer w.pushRest(d)()
	}
	g.pushRanges(w)
	return true
}

// sortBuffer labels the n bytes of entries in the buffer, in the order of inodes if
// that matters.
func (w *worker) sortBuffer(d *Dir, fd, n int) {
	if !w.byInode(d) || n < sortedFrom {
		w.entries(d, fd, w.buf[:n])
		return
	}
	b := w.ordered.Begin(n)
	w.ordered = b
	if b.Put(w.buf[:n]) != nil || b.InOrder() {
		w.entries(d, fd, w.buf[:n]) // which reports what is malformed
		return
	}
	for i := range b.Sort() {
		w.inOrder(d, fd, b.Slice(i))
	}
}
