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
// others wait in line, and no worker waits for them. Who owns what: the batch
// belongs to the worker that gathers, then (read only) to the workers on its
// slices, then to the one that finishes the last slice. Handing over is by
// the pool's deques and by pending, which orders the last against the others.

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
	now     *dir // being gathered, or in slices
	waiting []*dir
	spare   *batch // for its memory
	windows [windows]*batch
	reads   atomic.Bool // what the labels are like: see window_linux.go
}

// gather takes the rest of d over if it is worth sorting.
func (w *worker) gather(d *dir) bool {
	if w.row < guessAfter || !w.sortable(d) {
		return false
	}
	w.line(d)
	return true
}

// sortable says that the order in which d is written may make a difference.
func (w *worker) sortable(d *dir) bool {
	return w.m.sorts && d.extent != changes && !w.o.DryRun && !d.again && !w.isSmall(d)
}

// line has d, which is kept as a rest, gathered now or when its turn comes.
func (w *worker) line(d *dir) {
	w.m.sorter.mu.Lock()
	defer w.m.sorter.mu.Unlock()
	if w.m.sorter.busy {
		w.m.sorter.waiting = append(w.m.sorter.waiting, d)
		return
	}
	w.m.sorter.busy = true
	w.begin(d)
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
	if w.row >= guessAfter && !w.stopped() && sys.Rewind(fd, sys.After(buf[last:])) == 0 {
		w.cache.keep(d)
		w.line(d)
		return 0, true
	}
	return copy(w.buf, buf[end:n]), false // of another buffer if this one was taken
}

// isSmall says that the order in which d is written makes no difference.
func (w *worker) isSmall(d *dir) bool {
	if !d.small {
		st, e := sys.Fstatx(int(d.fd))
		d.small = e != 0 || st.Size < w.means.sorting.from || w.means.sorting.from == 0
	}
	return d.small
}

// begin starts on d. The sorter is locked.
func (w *worker) begin(d *dir) {
	b := w.m.sorter.spare
	if b == nil {
		b = newBatch(w.means.sorting.budget)
	}
	w.m.sorter.spare, w.m.sorter.now = nil, d
	b.begin(d)
	w.pool.Push(item{dir: d, batch: b, from: -1})
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
	if op, e := w.hand.enter(fd); e != 0 {
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
	w.cache.kept()
	w.cache.release(b.dir)
	w.m.sorter.mu.Lock()
	defer w.m.sorter.mu.Unlock()
	b.dir = nil
	if b.window {
		return
	}
	w.m.sorter.spare, w.m.sorter.busy, w.m.sorter.now = b, false, nil
	if len(w.m.sorter.waiting) > 0 {
		d := w.m.sorter.waiting[0]
		w.m.sorter.waiting = w.m.sorter.waiting[1:]
		w.m.sorter.busy = true
		w.begin(d)
	}
}

// clear lets go of what a stopped walk left in line. Batches that nobody
// finished hold their directories too.
func (s *sorter) clear(c *cache) {
	if s.now != nil {
		s.waiting = append(s.waiting, s.now)
	}
	for _, b := range s.windows {
		if b != nil && b.dir != nil {
			s.waiting = append(s.waiting, b.dir)
		}
	}
	for _, d := range s.waiting {
		c.kept()
		c.release(d)
	}
	s.waiting, s.now, s.busy, s.spare, s.windows = nil, nil, false, nil, [windows]*batch{}
}

// fillBatch reads the directory from b.start on, keeps what lies in b's range and
// fits, and gives out the slices. It says whether b is still in use.
func (w *worker) fillBatch(b *batch, fd int) bool {
	d, budget := b.dir, w.means.sorting.budget
	var e sys.Errno
	if b.reading == 0 {
		b.start, e = sys.Tell(fd)
	} else {
		e = sys.Rewind(fd, b.start)
	}
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
