// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"github.com/fastlabel/fastlabel/relabel/internal/order"
	"github.com/fastlabel/fastlabel/relabel/internal/rows"
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
// Where labels are right, the records of a directory are put in order within a window.
// While one worker labels a window, another fills the next; nothing is read twice. What
// fits into one buffer is put in order there.
//
// Who owns what: a gathering belongs to the worker that has the item without a
// slice, or that fills the window. Others may join to read; then it belongs to the last
// that leaves. It is then shared, and only read, by the workers on its slices, and belongs
// to the one whose slice is the last to be done, which gathers the next range or frees it.
// The pool's deques hand over, and the counters of readers and of slices (package order).

// sortedFrom is how many entries of one buffer are worth it.
const (
	sortedFrom  = 16
	leastRecord = 24 // bytes of one with a short name
)

// gathering has its directory pinned.
type gathering = order.Gathering[*Dir]

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
	return w.m.Sorts && w.Writes != DryRun && !d.rereading && !w.asListed(d)
}

// asListed reports whether d may as well be labelled in the order that it lists.
func (w *worker) asListed(d *Dir) bool {
	if !d.asListed {
		st, e := sys.Fstatx(d.FD())
		d.asListed = e != 0 || st.Size < w.Kernel.Sorting.From || w.Kernel.Sorting.From == 0
	}
	return d.asListed
}

// queueGather queues d, from a position on, for gathering, and starts now if nothing else
// is gathered. The caller is in d.
func (w *worker) queueGather(d *Dir, from int64) {
	st, _ := sys.Fstatx(d.FD()) // else it gets the least
	w.cache.expect(d)
	w.sorts.Queue(d, from, w.Kernel.Sorting.Room(st.Size))
	w.gatherQueued()
}

// queueSampled labels the first few of the n bytes of records in the buffer, if the
// rest of d may be worth gathering, and queues that if they are wrong: a buffer that
// is written as it comes is 2,000 names all over the inode table. It returns how
// many bytes are left.
func (w *worker) queueSampled(d *Dir, fd, n int) (left int, queued bool) {
	if !w.mayGather(d) {
		return n, false
	}
	buf := w.buf
	end, last, err := rows.Sample(buf[:n], guessAfter, w.m.LeftInodes)
	if err != nil {
		return n, false // records tells
	}
	w.records(d, fd, buf[:end:end])
	if w.wrongStreak >= guessAfter && !w.stopped() {
		w.queueGather(d, sys.After(buf[last:]))
		return 0, true
	}
	return copy(w.buf, buf[end:n]), false // of another buffer if this one was taken
}

// gatherQueued makes work of a directory that is queued, if nothing else is gathered.
func (w *worker) gatherQueued() {
	for !w.stopped() {
		g := w.sorts.Next()
		if g == nil {
			return
		}
		w.at(g.Dir, nil)
		w.now(w.opens())
		if _, op, e := w.cache.acquire(g.Dir); e != 0 {
			w.spoil(w.sorts.Free(g), op, e)
			continue
		}
		w.push(item{do: func(w *worker) { w.gather(g) }})
		return
	}
}

// gather reads the directory, with idle workers, keeps what fits of the next range, and
// makes work of it.
func (w *worker) gather(g *gathering) {
	d := g.Dir
	w.at(d, nil)
	w.askAhead(d, d.FD())
	g.Next()
	n := min(g.Stretches, 2*w.most)
	if !g.Fits() {
		n = 1 // nothing is read
	}
	stretches := order.Divide(g.From, n)
	if sys.Rewind(d.FD(), stretches[len(stretches)-1].From) != 0 {
		stretches = order.Divide(g.From, 1) // no index: positions are offsets
	}
	g.StartReading(stretches)
	for range len(stretches) - 1 {
		w.push(item{do: func(w *worker) { w.help(g) }})
	}
	w.read(g, d.FD())
}

// help joins the reading of g's directory, whichever that is by now. It does nothing if
// no stretch is left.
func (w *worker) help(g *gathering) {
	if !g.Join() {
		return
	}
	w.at(g.Dir, nil)
	w.now(w.opens())
	fd, _, e := w.m.OpenDir(g.Dir.FD(), itself)
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
	d := g.Dir
	for {
		s, ok := g.TakeStretch()
		if !ok {
			break
		}
		fits, more, e := true, true, w.begin(&s, fd)
		if e != 0 {
			w.spoil(d, "lseek", e)
		}
		for more && fits && e == 0 && !s.Ended() && !w.stopped() {
			var n int
			n, more = w.getdents(d, fd, 0)
			var err error
			if fits, err = g.AddRead(s.Cut(w.buf[:n])); err != nil {
				w.spoil(d, "getdents64", err)
			}
		}
	}
	w.doneReading(g)
}

// begin seeks to s. The first name at or after s.From may lie beyond s.To: a getdents64
// with a buffer too small for any name leaves the position at that name.
func (w *worker) begin(s *order.Stretch, fd int) sys.Errno {
	if e := sys.Rewind(fd, s.From); e != 0 {
		return e
	}
	w.now(xattrio.Getdents64)
	_, _ = sys.Getdents(fd, w.buf[:1]) // EINVAL
	at, e := sys.Tell(fd)
	s.StartAt(at)
	return e
}

// doneReading makes work of what was kept, once the last reader leaves.
func (w *worker) doneReading(g *gathering) {
	if !g.Leave() {
		return
	}
	d := g.Dir
	if g.Fits() {
		w.giveSlices(g)
		return
	}
	if e := sys.Rewind(d.FD(), g.From); e != 0 {
		w.spoil(d, "lseek", e)
	} else {
		d.asListed = true
		d.labelledBelow = g.Plan.From()
		w.cache.pinRest(d)
		w.push(restOf(d))
	}
	w.endGathering(g)
}

// giveSlices makes work of what was gathered.
func (w *worker) giveSlices(g *gathering) {
	count := 0
	w.unwatched(func() { count = g.Sort() }) // six million names take half a second
	if count == 0 {
		w.gathered(g) // it was all removed during the run
		return
	}
	// The lowest is pushed last, and so comes first.
	for i := count - 1; i >= 0; i-- {
		s := g.Slice(i)
		w.push(item{do: func(w *worker) { w.labelSlice(g, s) }})
	}
}

// labelSlice labels a slice of g.
func (w *worker) labelSlice(g *gathering, s order.Slice) {
	w.at(g.Dir, nil)
	w.inOrder(g.Dir, g.Dir.FD(), s)
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
	if g.More() && !w.stopped() {
		w.push(item{do: func(w *worker) { w.gather(g) }})
		return
	}
	w.endGathering(g)
}

// endGathering frees g, for a directory that is queued.
func (w *worker) endGathering(g *gathering) {
	w.cache.release(w.sorts.Free(g))
	w.gatherQueued()
}

// fillWindow takes the rest of d over, of which n bytes of records are in the
// buffer, if its order matters and there is memory for it.
func (w *worker) fillWindow(d *Dir, fd, n int) bool {
	if !w.m.Sorts || w.m.Served || d.rereading || w.Kernel.Sorting.From == 0 || w.wrong.Load() && !w.asListed(d) {
		return false
	}
	g := w.sorts.Window(d, max(w.Kernel.Sorting.Budget, bufferSize))
	if g == nil {
		return false
	}
	w.cache.pin(d)
	more := true
	for {
		if err := g.Put(w.buf[:n]); err != nil {
			w.spoil(d, "getdents64", err)
		}
		if !more || w.stopped() || !g.Room(bufferSize) {
			break
		}
		n, more = w.fill(d, fd)
	}
	if more && w.cache.pinRest(d) {
		w.give(restOf(d))
	} else if more {
		defer w.push(restOf(d))
	}
	w.giveSlices(g)
	return true
}

// noteMet notes what the labels are that were met of late: large directories of wrong ones
// are gathered, and a worker that begins then writes unread.
func (w *worker) noteMet() {
	if wrong := w.wrongStreak >= guessAfter; w.wrong.Load() != wrong {
		w.wrong.Store(wrong)
	}
}

// labelBuffer labels the n bytes of records in the buffer, in the order of inodes if
// that matters.
func (w *worker) labelBuffer(d *Dir, fd, n int) {
	if !w.m.Sorts || w.Kernel.Sorting.From == 0 || n < sortedFrom*leastRecord {
		w.records(d, fd, w.buf[:n])
		return
	}
	if w.ordered != nil {
		w.ordered.Reset()
	}
	if w.ordered == nil || !w.ordered.Room(n) {
		w.ordered = order.NewBatch(min(2*n, bufferSize)) // most directories are small
	}
	b := w.ordered
	if b.Put(w.buf[:n]) != nil || b.Len() < sortedFrom || b.InOrder() {
		w.records(d, fd, w.buf[:n]) // which tells what is malformed
		return
	}
	for i := range b.Sort() {
		w.inOrder(d, fd, b.Slice(i))
	}
}
