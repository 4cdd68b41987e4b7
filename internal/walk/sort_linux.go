// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"sync"
	"sync/atomic"

	"github.com/fastlabel/fastlabel/internal/order"
	"github.com/fastlabel/fastlabel/internal/sys"
	"github.com/fastlabel/fastlabel/internal/xattrio"
)

// A worker that finds a large directory with wrong labels (package order) gathers its
// entries, sorts them, and makes work of ranges of them, in several readings of the directory
// if they do not fit into the budget. Where they cannot be made to fit, since hard links give
// a few inodes more names than the budget has room for, or where the directory would be read
// too often, what is left of it is labelled as it lies. One directory is gathered at a time,
// so that the budget is enough for the run; no worker waits for that, but the directory does,
// in a queue. There it is like any that will be needed again: the cache may close it.
//
// Where labels are right, one worker labels a part of the directory while another reads the
// next; nothing is read twice. What fits into one buffer is put in order there.
//
// Who owns what: a sortedDir belongs to the worker that took it. Then it is shared by those
// that read its spans, and belongs to the one whose span is the last to be read. Then it is
// shared, and only read, by the workers on its ranges, and belongs to the one whose range is
// the last to be done, which gathers the next or frees it. The pool's deques, and the counters
// of spans and of ranges (package order), order that.

const (
	// sortedFrom bytes of entries in one buffer are worth it: 16 with short names.
	sortedFrom = 16 * 24
	// partBudget is for some 75,000 names of 32 bytes, a million of which are
	// read within 3 % of the time that one order of them all takes.
	partBudget = 3 << 20
)

// sortedDir is memory for entries, and the directory, pinned, that they are in.
type sortedDir struct {
	taken   atomic.Bool
	entries *order.Entries
	dir     *directory
	spans   int          // of a reading, at most
	unread  atomic.Int32 // of them
	mu      sync.Mutex   // guards the entries while there are several readers
}

// sorter has the memory in which a walk sorts directories, and those that wait for it. Where both
// parts are in use, a directory is labelled as it lies.
type sorter struct {
	mu    sync.Mutex
	queue []*directory // the last is next: it is the most likely to be open
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

// part takes memory for a part of d, which is pinned; nil: there is none.
func (s *sorter) part(d *directory, budget int, c *dirCache) *sortedDir {
	for i := range s.parts {
		if g := &s.parts[i]; g.taken.CompareAndSwap(false, true) {
			g.dir, g.entries = d, g.entries.Begin(budget)
			c.pinSorted(d)
			return g
		}
	}
	return nil
}

// clear releases the directories that a stopped walk left.
func (s *sorter) clear(c *dirCache) {
	for _, g := range [...]*sortedDir{&s.whole, &s.parts[0], &s.parts[1]} {
		if g.taken.Load() {
			c.release(g.dir)
		}
	}
}

// add adds what a reader has read, and reports whether it fits.
func (g *sortedDir) add(buf []byte) (fits bool, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	err = g.entries.Add(buf)
	return g.entries.Fits(), err
}

// byInode reports whether the entries of d are put in the order of inodes.
func (w *worker) byInode(d *directory) bool {
	return w.mount.Kind == sys.Ext4 && !d.rereading && w.walk.job.Kernel.Sorting.From > 0
}

// isLarge reports whether the order in which all of d is labelled may make a difference.
func (w *worker) isLarge(d *directory) bool {
	if d.unsorted || !w.byInode(d) {
		return false
	}
	st, e := sys.Fstatx(d.FD())
	d.unsorted = e != 0 || st.Size < w.walk.job.Kernel.Sorting.From
	return !d.unsorted
}

// sample labels the first few of the n bytes of entries in the buffer, if the
// rest of d may be worth sorting, and queues that if they are wrong: a buffer that
// is written as it comes is 2,000 names all over the inode table. It returns how
// many bytes are left.
func (w *worker) sample(d *directory, fd, n int) (left int, queued bool) {
	if w.walk.job.Writes == DryRun || !w.isLarge(d) {
		return n, false
	}
	end, last, err := firstOf(w.buf[:n], guessAfter, func(e sys.Dirent) bool { return isPlain(e, w.mount.SkipInodes) && !sys.IsDot(e.Name) })
	if err != nil {
		return n, false // entries reports it
	}
	w.entries(d, fd, w.buf[:end:end], 0)
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
		fd := w.acquire(g.dir)
		if fd < 0 {
			g.taken.Store(false)
			continue
		}
		st, _ := sys.Fstatx(fd) // else it gets the least
		budget, spans := w.walk.job.Kernel.Sorting.Room(st.Size)
		g.entries, g.spans = g.entries.Begin(budget), min(spans, 2*w.walk.most)
		w.push(gather{g})
		return
	}
}

// gather is the reading of a directory for the next entries that fit.
type gather struct{ *sortedDir }

func (g gather) do(w *worker) {
	d := g.dir
	w.pos.at(d, nil)
	w.readAhead(d, d.FD())
	g.entries.Next()
	spans := order.Divide(d.sortFrom, g.spans)
	if sys.Rewind(d.FD(), spans[len(spans)-1].At) != 0 {
		spans = order.Divide(d.sortFrom, 1) // no index: positions are offsets
	}
	g.unread.Store(int32(len(spans)))
	for _, s := range spans[1:] {
		w.push(&span{g.sortedDir, s})
	}
	g.read(w, d.FD(), spans[0])
}

// span is a part of a directory to be read.
type span struct {
	of   *sortedDir
	part order.Span
}

func (s *span) do(w *worker) {
	d := s.of.dir
	w.pos.at(d, nil)
	w.pos.now(w.labels.opens())
	fd, op, e := w.mount.OpenDir(d.FD(), sys.Cname("."))
	for try := 0; xattrio.VerdictOf(e) == xattrio.Again && w.labels.again(try); try++ {
		fd, op, e = w.mount.OpenDir(d.FD(), sys.Cname("."))
	}
	if e != 0 {
		w.labels.failDir(d, op, e)
		s.of.spanDone(w)
		return
	}
	s.of.read(w, fd, s.part)
	sys.Close(fd)
}

// read reads a span by fd.
func (g *sortedDir) read(w *worker, fd int, s order.Span) {
	e := sys.Rewind(fd, s.At)
	if e == 0 {
		var at int64
		// The first name at or after s.At may lie beyond s.To: a getdents64 with a
		// buffer too small for any name leaves the position at that name.
		w.pos.now(xattrio.Getdents64)
		_, _ = sys.Getdents(fd, w.buf[:1]) // EINVAL
		at, e = sys.Position(fd)
		s.At = max(s.At, at)
	}
	if e != 0 {
		w.labels.failDir(g.dir, "lseek", e)
	}
	for more, fits := e == 0, true; more && fits && !s.Ended() && !w.queue.Stopped(); {
		var n int
		n, more = w.getdents(g.dir, fd, 0)
		var err error
		if fits, err = g.add(s.Cut(w.buf[:n])); err != nil {
			w.labels.failDir(g.dir, "getdents64", err)
		}
	}
	g.spanDone(w)
}

// spanDone makes work of what was gathered, once the last span was read.
func (g *sortedDir) spanDone(w *worker) {
	if g.unread.Add(-1) > 0 {
		return
	}
	if g.entries.Fits() {
		g.pushRanges(w)
		return
	}
	d := g.dir
	if e := sys.Rewind(d.FD(), d.sortFrom); e != 0 {
		w.labels.failDir(d, "lseek", e)
	} else {
		d.unsorted, d.sortedBelow = true, g.entries.From()
		w.cache.pinRest(d)
		w.push(rest{d})
	}
	g.done(w)
}

// pushRanges makes work of what was gathered.
func (g *sortedDir) pushRanges(w *worker) {
	count := 0
	w.pos.pause(func() { count = g.entries.Sort() }) // six million names take half a second
	if count == 0 {
		g.done(w) // it was all removed during the run
	}
	// The lowest is pushed last, and so comes first.
	for i := count - 1; i >= 0; i-- {
		w.push(&sortedRange{g, g.entries.Range(i)})
	}
}

// done continues when all that was gathered was labelled: with the next entries that fit, or
// with another directory.
func (g *sortedDir) done(w *worker) {
	if g.entries.Fits() && g.entries.More() && !w.queue.Stopped() {
		w.push(gather{g})
		return
	}
	d := g.dir
	g.taken.Store(false)
	w.cache.release(d)
	w.gatherNext()
}

// sortedRange is some of the entries of a directory, in order.
type sortedRange struct {
	of   *sortedDir
	part order.Range
}

func (r *sortedRange) do(w *worker) {
	d := r.of.dir
	w.pos.at(d, nil)
	w.inOrder(d, d.FD(), r.part, 0)
	if r.part.Done() {
		r.of.done(w)
	}
}

// inOrder labels the entries of a range of d, but for inode numbers below least.
func (w *worker) inOrder(d *directory, fd int, r order.Range, least uint64) {
	for !w.queue.Stopped() {
		buf := r.Next(w.buf)
		if len(buf) == 0 {
			return
		}
		w.entries(d, fd, buf, least)
	}
}

// sortPart takes the rest of d over, of which n bytes of entries are in the
// buffer, if its order matters and there is memory for it.
func (w *worker) sortPart(d *directory, fd, n int) bool {
	if !w.byInode(d) || d.sortedBelow > 0 || w.walk.wrong.Load() && w.isLarge(d) {
		return false
	}
	g := w.walk.sorter.part(d, min(partBudget, max(w.walk.job.Kernel.Sorting.Budget, bufferSize)), w.cache)
	if g == nil {
		return false
	}
	for more := true; ; n, more = w.fill(d, fd, 0) {
		if err := g.entries.Put(w.buf[:n]); err != nil {
			w.labels.failDir(d, "getdents64", err)
		}
		if !more {
			break
		}
		if w.queue.Stopped() || !g.entries.Room(bufferSize) {
			defer w.pushRest(d)()
			break
		}
	}
	g.pushRanges(w)
	return true
}

// sortBuffer labels the n bytes of entries in the buffer, in the order of inodes if
// that matters, but for inode numbers below least.
func (w *worker) sortBuffer(d *directory, fd, n int, least uint64) {
	if !w.byInode(d) || n < sortedFrom {
		w.entries(d, fd, w.buf[:n], least)
		return
	}
	w.sorted = w.sorted.Begin(n)
	if w.sorted.Put(w.buf[:n]) != nil || w.sorted.InOrder() {
		w.entries(d, fd, w.buf[:n], least) // which reports what is malformed
		return
	}
	for i := range w.sorted.Sort() {
		w.inOrder(d, fd, w.sorted.Range(i), least)
	}
}
