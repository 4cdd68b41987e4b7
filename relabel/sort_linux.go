// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"math"
	"sync"
	"sync/atomic"

	"github.com/fastlabel/fastlabel/relabel/internal/sys"
)

// On ext4 a large directory lists its entries by a hash of their names, and
// labels lie in the inodes. Writing in that order dirties the inode table at
// random: once the table is larger than a good part of the journal, every
// transaction carries each of its blocks again, and the journal stalls the
// writers. In the order of inode numbers each block is written once: four
// times as fast for a million files on a volume of 50 GiB.
//
// So a worker that meets a large directory with wrong labels gathers its
// entries, sorts them, and gives out slices of 2,048. What does not fit into
// the budget is left for another reading of the directory: the first keeps
// the lowest inode numbers and a histogram of the others, from which each
// later one knows which range will fit. Where a range cannot be made to fit, since
// hard links give a few inodes more names than the budget holds, or where a directory
// would be read too often, what is left of it is labelled as it lies.
//
// One directory is gathered at a time, so that the budget holds for the run;
// others wait in line, and no worker waits for them. In line a directory is like
// any that will be needed again: the cache may close it. It is then found again by
// name; if it was renamed or removed by then, it is a failure and named.
//
// Who owns what: the batch belongs to the worker that gathers, then (read only) to
// the workers on its slices, then to the one that finishes the last slice. Handing
// over is by the pool's deques and by pending, which orders the last against the
// others. The sorter's now and spare belong to who owns the batch, or set busy.

// sorting says from when on, and within how much memory, batches are sorted.
type sorting struct {
	from   int64 // directories of that many bytes
	budget int   // names and index, in bytes
}

// ample is for any machine: a directory of 1 MiB holds some 25,000 entries, below
// which ext4 keeps the inodes of a directory together anyway, and 40 MiB hold a
// million names of 32 bytes.
var ample = sorting{from: 1 << 20, budget: 40 << 20}

// sliceLen is how many entries of a batch are one piece of work.
const sliceLen = 2048

// sorter is the line of directories that wait to be gathered, and the windows.
type sorter struct {
	mu      sync.Mutex
	busy    bool
	now     *dir // being gathered, or in slices: pinned
	waiting []queued
	spare   *batch // for its memory
	windows [windows]*batch
	reads   atomic.Bool // what the labels are like: see window_linux.go
}

// queued is one in line: a directory, and where its rest begins.
type queued struct {
	dir *dir
	at  int64
}

// gather takes the rest of d over if it is worth sorting.
func (w *worker) gather(d *dir) bool {
	if w.wrongStreak < guessAfter || !w.sortable(d) {
		return false
	}
	at, e := sys.Tell(int(d.fd))
	if e != 0 {
		return false
	}
	w.queueGather(d, at)
	return true
}

// sortable says that the order in which d is written may make a difference.
func (w *worker) sortable(d *dir) bool {
	return w.m.sorts && d.extent != changes && !w.o.DryRun && !d.rereading && !w.isSmall(d)
}

// queueGather queues the rest of d, which begins at a position, and starts on it now if
// nothing else is gathered. The caller is in d.
func (w *worker) queueGather(d *dir, at int64) {
	w.cache.expect(d)
	s := w.m.sorter
	s.mu.Lock()
	s.waiting = append(s.waiting, queued{d, at})
	idle := !s.busy
	s.busy = true
	s.mu.Unlock()
	if idle {
		w.next()
	}
}

// sample labels the first few of the n bytes of records in the buffer, if the rest
// of d may be worth sorting, and takes that over if they are wrong: a buffer that is
// written as it comes is 2,000 names all over the inode table. It returns how many
// bytes are left.
func (w *worker) sample(d *dir, fd, n int) (left int, taken bool) {
	if w.ledger != nil || !w.sortable(d) {
		return n, false
	}
	buf := w.buf
	end, last := 0, 0
	for plain := 0; plain < guessAfter && end < n; {
		r, length, err := sys.Parse(buf[end:n])
		if err != nil {
			return n, false // records tells
		}
		if w.plain(r) && !sys.IsDot(r.Name) {
			plain++
		}
		end, last = end+length, end
	}
	w.records(d, fd, buf[:end:end])
	if w.wrongStreak >= guessAfter && !w.stopped() {
		w.queueGather(d, sys.After(buf[last:]))
		return 0, true
	}
	return copy(w.buf, buf[end:n]), false // of another buffer if this one was taken
}

// isSmall says that the order in which d is written makes no difference.
func (w *worker) isSmall(d *dir) bool {
	if !d.small {
		st, e := sys.Fstatx(int(d.fd))
		d.small = e != 0 || st.Size < w.capabilities.sorting.from || w.capabilities.sorting.from == 0
	}
	return d.small
}

// next starts on the directory that came last, which is the most likely to be open.
func (w *worker) next() {
	s := w.m.sorter
	for {
		s.mu.Lock()
		last := len(s.waiting) - 1
		if last < 0 || w.stopped() {
			s.busy = false
			s.mu.Unlock()
			return
		}
		p := s.waiting[last]
		s.waiting = s.waiting[:last]
		s.mu.Unlock()
		w.at(p.dir, nil)
		w.now(w.opens())
		if _, op, e := w.cache.acquire(p.dir); e != 0 {
			w.spoil(p.dir, op, e)
			continue
		}
		b := s.spare
		if b == nil {
			b = newBatch(w.capabilities.sorting.budget)
		}
		s.spare, s.now = nil, p.dir
		b.reset(p.dir, p.at)
		w.pool.Push(item{dir: p.dir, batch: b, from: -1})
		return
	}
}

// slice labels a slice of b, or with from -1 gathers b first.
func (w *worker) slice(b *batch, from int) {
	fd := int(b.dir.fd)
	w.at(b.dir, nil)
	if from < 0 {
		if !w.fillBatch(b, fd) {
			w.endBatch(b)
		}
		return
	}
	if op, e := w.io.Enter(fd); e != 0 {
		w.spoil(b.dir, op, e)
	} else {
		w.words(b, fd, b.index[from:min(from+sliceLen, len(b.index))])
	}
	if b.pending.Add(-1) > 0 {
		return
	}
	if b.more && !w.stopped() {
		w.pool.Push(item{dir: b.dir, batch: b, from: -1})
		return
	}
	w.endBatch(b)
}

// endBatch lets the directory go, and the next in line begin.
func (w *worker) endBatch(b *batch) {
	w.cache.release(b.dir)
	s := w.m.sorter
	if b.window {
		s.mu.Lock()
		b.dir = nil
		s.mu.Unlock()
		return
	}
	b.dir = nil
	s.spare, s.now = b, nil
	w.next()
}

// clear lets go of the directories of batches that a stopped walk left. What is in
// line is the cache's.
func (s *sorter) clear(c *cache) {
	if s.now != nil {
		c.release(s.now)
	}
	for _, b := range s.windows {
		if b != nil && b.dir != nil {
			c.release(b.dir)
		}
	}
	s.waiting, s.now, s.busy, s.spare, s.windows = nil, nil, false, nil, [windows]*batch{}
}

// fillBatch reads the directory from b.start on, keeps what lies in b's range and
// fits, and gives out the slices. It says whether b is still in use.
func (w *worker) fillBatch(b *batch, fd int) bool {
	d, budget := b.dir, w.capabilities.sorting.budget
	e := sys.Rewind(fd, b.start)
	fits := b.plan(budget)
	d.least = b.from
	for more := true; more && fits && e == 0 && !w.stopped(); {
		var n int
		n, more = w.fill(d, fd)
		w.each(d, w.buf[:n], func(r sys.Dirent) { fits = fits && b.add(r, budget) })
	}
	if e == 0 && !fits {
		e = sys.Rewind(fd, b.start)
	}
	switch {
	case e != 0:
		w.spoil(d, "lseek", e)
		return false
	case !fits:
		d.small = true
		w.cache.keep(d)
		w.pool.Push(item{dir: d})
		return false
	}
	b.more = b.to != math.MaxUint64
	count := w.giveSlices(b)
	if count == 0 && b.more { // all of the range was removed during the run
		w.pool.Push(item{dir: d, batch: b, from: -1})
		return true
	}
	return count > 0
}

// each hands the records of d on, but for . and ..
func (w *worker) each(d *dir, records []byte, f func(sys.Dirent)) {
	for len(records) > 0 {
		r, length, err := sys.Parse(records)
		if err != nil {
			w.spoil(d, "getdents64", err)
			return
		}
		records = records[length:]
		if !sys.IsDot(r.Name) {
			f(r)
		}
	}
}

// giveSlices sorts what was gathered, makes work of it, and says in how many pieces.
func (w *worker) giveSlices(b *batch) int {
	b.sort()
	count := (len(b.index) + sliceLen - 1) / sliceLen
	b.pending.Store(int32(count))
	// The lowest is pushed last, and so comes first.
	for i := count - 1; i >= 0; i-- {
		w.pool.Push(item{dir: b.dir, batch: b, from: i * sliceLen})
	}
	return count
}
