// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"math"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/fastlabel/fastlabel/internal/order"
	"github.com/fastlabel/fastlabel/internal/sys"
)

// A worker that finds a directory with more entries than fit into a buffer gathers them, sorts
// them (package order), and makes work of ranges of them. Of a large directory whose labels are
// wrong it gathers as many as the budget allows, which is most often all; of others a part, and
// another worker gathers the next while this one is labelled. What fits into one buffer is put
// in order there.
//
// One directory of wrong labels is gathered at a time, so that the budget is enough for the
// run; no worker waits for that, but the directory does, in a queue. There it is like any that
// will be needed again: the cache may close it.
//
// Who owns what: gathered entries belong to the worker that gathers them, or to two of them and a
// mutex. Then they are shared,
// and only read, by the workers on their ranges, and belong to the one whose range is the last to
// be done, which frees them. The pool's deques, and the counter of ranges (package order), order
// that.

const (
	// sample entries, some of which are directories, show whether labels are wrong.
	sample = 2 * guessAfter
	// sortedFrom bytes of entries in one buffer are worth it: 16 with short names.
	sortedFrom = 16 * 24
	// partBudget is for some 75,000 names of 32 bytes, a million of which are
	// read within 3 % of the time that one order of them all takes.
	partBudget = 3 << 20
)

// gathered is memory for entries, and the directory, pinned, that they are in.
type gathered struct {
	dir     *directory // nil: the memory is free
	entries *order.Entries
	mu      sync.Mutex   // guards the entries while they are gathered
	readers atomic.Int32 // that gather them
}

// sorter has the memory in which a walk sorts directories, and those that wait for it.
type sorter struct {
	mu     sync.Mutex // guards all but the entries
	memory [3]gathered
	queue  []gather // the last is next: it is the most likely to be open
}

// of returns the memory for entries with wrong labels, or that for others.
func (s *sorter) of(wrong bool) []gathered {
	if wrong {
		return s.memory[:1]
	}
	return s.memory[1:]
}

// take takes memory for d, which the caller is in. It returns nil if there is none.
func (s *sorter) take(d *directory, wrong bool, c *dirCache) *gathered {
	all := s.of(wrong)
	for i := range all {
		if g := &all[i]; g.dir == nil {
			g.dir = d
			c.pinSorted(d)
			return g
		}
	}
	return nil
}

// clear releases the directories that a stopped walk left.
func (s *sorter) clear(c *dirCache) {
	for i := range s.memory {
		if d := s.memory[i].dir; d != nil {
			c.release(d)
		}
	}
}

// byInode reports whether the entries of d are put in the order of inodes.
func (w *worker) byInode(d *directory) bool {
	return w.mount.Kind == sys.Ext4 && !d.rereading && w.walk.job.Kernel.Sorting.From > 0
}

// sortRest takes the rest of d over, of which n bytes of entries are in the buffer, if its
// order matters and there is memory for it, or will be. Of a large directory it labels the
// first few entries before that, to know whether labels are wrong: a buffer that is written as
// it comes is 2,000 names all over the inode table. It returns how many bytes are left.
func (w *worker) sortRest(d *directory, fd, n int) (left int, taken bool) {
	if !w.byInode(d) {
		return n, false
	}
	job, s := w.walk.job, &w.walk.sorter
	next, wrong := gather{dir: d, budget: min(partBudget, job.Kernel.Sorting.Budget)}, false
	if st, e := sys.Fstatx(fd); e == 0 && st.Size >= job.Kernel.Sorting.From && job.Writes != DryRun {
		end, last, err := firstOf(w.buf[:n], sample)
		if err != nil {
			return n, false // entries reports it
		}
		w.entries(d, fd, w.buf[:end:end])
		if wrong = w.labels.wrong >= guessAfter; wrong {
			room := job.Kernel.Sorting.Room(st.Size)
			next = gather{d, sys.After(w.buf[last:]), room, st.Size <= int64(room)}
		}
		n = copy(w.buf, w.buf[end:n])
	}
	s.mu.Lock()
	g := s.take(d, wrong, w.cache)
	if g == nil && wrong {
		w.cache.expect(d)
		s.queue = append(s.queue, next)
	}
	s.mu.Unlock()
	switch {
	case g != nil:
		w.gather(g, next, n)
	case !wrong:
		return n, false
	}
	return 0, true
}

// gather is a directory, which expects it, whose entries from a position on are to be gathered.
type gather struct {
	dir    *directory
	from   int64
	budget int
	fits   bool // all of it
}

func (r gather) do(w *worker) {
	g := &w.walk.sorter.of(true)[0]
	w.pos.at(r.dir, nil)
	w.readAhead(r.dir, r.dir.FD())
	if e := sys.Rewind(r.dir.FD(), r.from); e != 0 {
		w.labels.failDir(r.dir, "lseek", e)
		g.done(w)
		return
	}
	w.gather(g, r, 0)
}

// gather makes work of the n bytes of entries in the buffer and of what follows them, as much
// as fits, and of the rest. If all of it fits, another worker reads the upper half.
func (w *worker) gather(g *gathered, r gather, n int) {
	d := g.dir
	w.pos.at(d, nil)
	g.entries = g.entries.Begin(max(r.budget, bufferSize))
	g.readers.Store(1)
	if r.fits && r.from < order.Middle {
		if fd, _, e := w.mount.OpenDir(d.FD(), sys.Cname(".")); e == 0 {
			g.readers.Store(2)
			w.push(upper{g, fd})
			w.read(g, true, d.FD(), n, order.Middle)
			return
		}
	}
	w.read(g, false, d.FD(), n, math.MaxInt64)
}

// upper is the upper half of a directory that is gathered, with a descriptor of its own.
type upper struct {
	of *gathered
	fd int
}

func (u upper) do(w *worker) {
	d := u.of.dir
	w.pos.at(d, nil)
	switch e := sys.Rewind(u.fd, order.Middle); e {
	case 0:
		w.read(u.of, true, u.fd, 0, math.MaxInt64)
	case syscall.EINVAL: // d has no index: positions are offsets
		u.of.sort(w)
	default:
		w.labels.failDir(d, "lseek", e)
		u.of.sort(w)
	}
	sys.Close(u.fd)
}

// read gathers the n bytes of entries in the buffer and what fd gives before the position to. A
// directory that fits, and has grown since, is labelled as it lies where there is no room.
func (w *worker) read(g *gathered, fits bool, fd, n int, to int64) {
	d := g.dir
	for more := true; ; n, more = w.fill(d, fd, 0) {
		buf, ended := order.Before(w.buf[:n], to)
		if room, err := g.put(buf); err != nil {
			w.labels.failDir(d, "getdents64", err)
		} else if !room {
			w.entries(d, fd, buf)
		}
		if !more || ended || w.queue.Stopped() {
			break
		}
		if !fits && !g.entries.Room(bufferSize) {
			defer w.pushRest(d)()
			break
		}
	}
	g.sort(w)
}

// put adds what a reader has read, if there is room.
func (g *gathered) put(buf []byte) (room bool, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if room = g.entries.Room(len(buf)); room {
		err = g.entries.Put(buf)
	}
	return room, err
}

// sort makes work of what the last reader has gathered.
func (g *gathered) sort(w *worker) {
	if g.readers.Add(-1) > 0 {
		return
	}
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

// done frees the memory, or has the next directory gathered in it that waits for it.
func (g *gathered) done(w *worker) {
	s := &w.walk.sorter
	w.cache.release(g.dir)
	for wrong := g == &s.of(true)[0]; ; {
		s.mu.Lock()
		last := len(s.queue) - 1
		if !wrong || last < 0 {
			g.dir = nil
			s.mu.Unlock()
			return
		}
		next := s.queue[last]
		g.dir, s.queue = next.dir, s.queue[:last]
		s.mu.Unlock()
		if w.acquire(next.dir) >= 0 {
			w.push(next)
			return
		}
	}
}

// sortedRange is some of the entries of a directory, in order.
type sortedRange struct {
	of   *gathered
	part order.Range
}

func (r *sortedRange) do(w *worker) {
	d := r.of.dir
	w.pos.at(d, nil)
	w.inOrder(d, d.FD(), r.part)
	if r.part.Done() {
		r.of.done(w)
	}
}

// inOrder labels the entries of a range of d.
func (w *worker) inOrder(d *directory, fd int, r order.Range) {
	for !w.queue.Stopped() {
		buf := r.Next(w.buf)
		if len(buf) == 0 {
			return
		}
		w.entries(d, fd, buf)
	}
}

// sortBuffer labels the n bytes of entries in the buffer, in the order of inodes if that matters.
func (w *worker) sortBuffer(d *directory, fd, n int) {
	if !w.byInode(d) || n < sortedFrom {
		w.entries(d, fd, w.buf[:n])
		return
	}
	w.sorted = w.sorted.Begin(n)
	if w.sorted.Put(w.buf[:n]) != nil || w.sorted.InOrder() {
		w.entries(d, fd, w.buf[:n]) // which reports what is malformed
		return
	}
	for i := range w.sorted.Sort() {
		w.inOrder(d, fd, w.sorted.Range(i))
	}
}
