// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"sync"
	"sync/atomic"

	"github.com/fastlabel/fastlabel/relabel/internal/dirs"
	"github.com/fastlabel/fastlabel/relabel/internal/order"
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
// entries, sorts them, and gives out slices, in several readings of the directory
// if they do not fit into the budget. Where a range cannot be made to fit, since
// hard links give a few inodes more names than the budget holds, or where a
// directory would be read too often, what is left of it is labelled as it lies.
// One directory is gathered at a time, so that the budget holds for the run; others
// wait in a queue, and no worker waits for them. In the queue a directory is like
// any that will be needed again: the cache may close it. It is then found again by
// name; if it was renamed or removed by then, it is a failure and named.
//
// Right labels are read faster too if the inodes lie close together: a block of the
// inode table holds 16, and the kernel looks it up for each. So where labels are
// right, the records of a directory that does not fit into one buffer are put in
// order within a window, some hundred thousand of them: a fifth faster than as they
// come. While one worker labels a window, another fills the next; nothing is read
// twice. What fits into one buffer is put in order there.
//
// Who owns what: a gathering belongs to the worker that has the item without a
// slice, or that fills the window. It is then shared, and only read, by the workers
// on its slices, and belongs to the one whose slice is the last to be done, which
// gathers the next range or frees it. The pool's deques hand over, and the counter
// of slices (package order).

// Sorting says from when on, and within how much memory, directories are gathered.
type Sorting struct {
	From   int64 // directories of that many bytes; 0: none
	Budget int   // names and index, in bytes
}

// Ample is for any machine: a directory of 1 MiB holds some 25,000 entries, below
// which ext4 keeps the inodes of a directory together anyway, and 40 MiB hold a
// million names of 32 bytes.
var Ample = Sorting{From: 1 << 20, Budget: 40 << 20}

const (
	// windows of a walk at a time; where they are in use, the directory is labelled
	// as it lies.
	windows = 2
	// windowBudget is for some 75,000 names of 32 bytes, a million of which are
	// read within 3 % of the time that one order of them all takes.
	windowBudget = 3 << 20
	// sortedFrom is how many entries of one buffer are worth it.
	sortedFrom = 16
)

// gathering is memory, and the directory whose entries are in it.
type gathering struct {
	dir  *Dir        // pinned; nil: free. The sorter's mutex guards it
	plan *order.Plan // in a window of one reading, which is not the whole directory
	from int64       // where in the directory a reading begins
}

// sorter has the memory of a mount for gathering, and the directories that wait
// for it.
type sorter struct {
	mu      sync.Mutex
	queue   []queued
	whole   gathering // of a large directory whose labels are wrong
	windows [windows]gathering
	right   atomic.Bool // the labels met of late, which are to be read in windows
}

// queued is a directory, and where its rest begins.
type queued struct {
	dir  *Dir
	from int64
}

// queueRest queues the rest of d for gathering if it is worth it.
func (w *worker) queueRest(d *Dir) bool {
	if w.wrongStreak < guessAfter || !w.mayGather(d) {
		return false
	}
	at, e := sys.Tell(d.FD())
	if e != 0 {
		return false
	}
	w.queueGather(d, at)
	return true
}

// mayGather reports whether the order in which d is written may make a difference.
func (w *worker) mayGather(d *Dir) bool {
	return w.m.Sorts && d.Note.extent != changes && w.Writes != DryRun && !d.Note.rereading && !w.asListed(d)
}

// asListed reports whether d may as well be labelled in the order that it lists.
func (w *worker) asListed(d *Dir) bool {
	if !d.Note.asListed {
		st, e := sys.Fstatx(d.FD())
		d.Note.asListed = e != 0 || st.Size < w.Kernel.Sorting.From || w.Kernel.Sorting.From == 0
	}
	return d.Note.asListed
}

// queueGather queues d, from a position on, for gathering, and starts now if nothing else
// is gathered. The caller is in d.
func (w *worker) queueGather(d *Dir, from int64) {
	w.cache.Expect(d)
	s := &w.sorter
	s.mu.Lock()
	s.queue = append(s.queue, queued{d, from})
	s.mu.Unlock()
	w.gatherQueued()
}

// queueSampled labels the first few of the n bytes of records in the buffer, if the
// rest of d may be worth gathering, and queues that if they are wrong: a buffer that
// is written as it comes is 2,000 names all over the inode table. It returns how
// many bytes are left.
func (w *worker) queueSampled(d *Dir, fd, n int) (left int, queued bool) {
	if w.ledger != nil || !w.mayGather(d) {
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

// gatherQueued makes work of the directory that was queued last, which is the most
// likely to be open, if nothing else is gathered.
func (w *worker) gatherQueued() {
	s := &w.sorter
	g := &s.whole
	for {
		s.mu.Lock()
		last := len(s.queue) - 1
		if g.dir != nil || last < 0 || w.stopped() {
			s.mu.Unlock()
			return
		}
		g.dir, g.from = s.queue[last].dir, s.queue[last].from
		s.queue = s.queue[:last]
		s.mu.Unlock()
		w.at(g.dir, nil)
		w.now(w.opens())
		if _, op, e := w.cache.Acquire(g.dir); e != 0 {
			w.spoil(s.free(g), op, e)
			continue
		}
		if g.plan == nil {
			g.plan = order.NewPlan(w.Kernel.Sorting.Budget)
		}
		g.plan.Begin()
		w.pool.Push(item{kind: gatherRange, dir: g.dir, gathering: g})
		return
	}
}

// gather reads the directory from its beginning on, keeps what fits of the next
// range, and makes work of it.
func (w *worker) gather(g *gathering) {
	d, plan := g.dir, g.plan
	fd := d.FD()
	w.at(d, nil)
	e := sys.Rewind(fd, g.from)
	plan.Next()
	d.Note.labelledBelow = plan.From()
	for more := true; more && plan.Fits() && e == 0 && !w.stopped(); {
		var n int
		n, more = w.fill(d, fd)
		if err := plan.Add(w.buf[:n]); err != nil {
			w.spoil(d, "getdents64", err)
		}
	}
	if e == 0 && !plan.Fits() {
		e = sys.Rewind(fd, g.from)
	}
	switch {
	case e != 0:
		w.spoil(d, "lseek", e)
		w.endGathering(g)
	case !plan.Fits():
		d.Note.asListed = true
		w.cache.Keep(d)
		w.pool.Push(item{dir: d})
		w.endGathering(g)
	default:
		w.giveSlices(g)
	}
}

// giveSlices makes work of what was gathered.
func (w *worker) giveSlices(g *gathering) {
	count := g.plan.Sort()
	if count == 0 {
		w.gathered(g) // it was all removed during the run
		return
	}
	// The lowest is pushed last, and so comes first.
	for i := count - 1; i >= 0; i-- {
		w.pool.Push(item{kind: labelSlice, dir: g.dir, gathering: g, slice: g.plan.Slice(i)})
	}
}

// labelSlice labels a slice of g.
func (w *worker) labelSlice(g *gathering, s order.Slice) {
	w.at(g.dir, nil)
	w.inOrder(g.dir, g.dir.FD(), s)
	if s.Done() {
		w.gathered(g)
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
	if g.plan.More() && !w.stopped() {
		w.pool.Push(item{kind: gatherRange, dir: g.dir, gathering: g})
		return
	}
	w.endGathering(g)
}

// endGathering frees g, for a directory that is queued.
func (w *worker) endGathering(g *gathering) {
	w.cache.Release(w.sorter.free(g))
	w.gatherQueued()
}

// free gives the memory back, and the directory that was in it, which is pinned.
func (s *sorter) free(g *gathering) *Dir {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := g.dir
	g.dir = nil
	return d
}

// clear lets go of the memory, and of the directories of gatherings that a stopped
// walk left. What is queued is the cache's.
func (s *sorter) clear(c *dirs.Cache[note]) {
	for _, g := range append(s.windows[:], s.whole) {
		if g.dir != nil {
			c.Release(g.dir)
		}
	}
	s.queue, s.whole, s.windows = nil, gathering{}, [windows]gathering{}
}

// fillWindow takes the rest of d over, of which n bytes of records are in the
// buffer, if its order matters and there is memory for it.
func (w *worker) fillWindow(d *Dir, fd, n int) bool {
	s := &w.sorter
	if !w.m.Sorts || w.m.Served || d.Note.extent == changes || d.Note.rereading || w.Kernel.Sorting.From == 0 || !s.right.Load() && !w.asListed(d) {
		return false
	}
	g := s.window(d, min(windowBudget, w.Kernel.Sorting.Budget))
	if g == nil {
		return false
	}
	w.cache.Pin(d)
	g.plan.Begin()
	more := true
	for {
		if err := g.plan.Put(w.buf[:n]); err != nil {
			w.spoil(d, "getdents64", err)
		}
		if !more || w.stopped() || !g.plan.Room(bufferSize) {
			break
		}
		n, more = w.fill(d, fd)
	}
	if more && w.cache.Keep(d) {
		w.pool.Give(item{dir: d})
	} else if more {
		defer w.pool.Push(item{dir: d})
	}
	w.giveSlices(g)
	return true
}

// window lends memory for a window on d, if it is not all in use.
func (s *sorter) window(d *Dir, budget int) *gathering {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.windows {
		if g := &s.windows[i]; g.dir == nil {
			if g.plan == nil {
				g.plan = order.NewPlan(max(budget, bufferSize))
			}
			g.dir = d
			return g
		}
	}
	return nil
}

// noteRight notes whether the labels met of late were right: large directories of
// wrong ones are gathered.
func (w *worker) noteRight() {
	if right := w.wrongStreak < guessAfter; w.m.Sorts && w.sorter.right.Load() != right {
		w.sorter.right.Store(right)
	}
}

// labelBuffer labels the n bytes of records in the buffer, in the order of inodes if
// that matters.
func (w *worker) labelBuffer(d *Dir, fd, n int) {
	if !w.m.Sorts || d.Note.extent == changes || w.Kernel.Sorting.From == 0 {
		w.records(d, fd, w.buf[:n])
		return
	}
	if w.ordered == nil {
		w.ordered = order.NewBatch(bufferSize)
	}
	b := w.ordered
	b.Reset()
	if b.Put(w.buf[:n]) != nil || b.Len() < sortedFrom || b.InOrder() {
		w.records(d, fd, w.buf[:n]) // which tells what is malformed
		return
	}
	for i := range b.Sort() {
		w.inOrder(d, fd, b.Slice(i))
	}
}
