// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"slices"

	"github.com/fastlabel/fastlabel/relabel/internal/sys"
)

// Labels that are right are read the faster on ext4, the closer together the
// inodes lie that are read one after the other: a block of the inode table holds
// 16, and the kernel looks it up for each. A directory lists its entries by a hash
// of their names. So the records of a directory that does not fit into one buffer
// are put in order within a window: some hundred thousand of them, a fifth faster
// than as they come. While one worker labels a window, another fills the next.
//
// Nothing is read twice, and no order is promised: where many wrong labels are to
// be written to a large directory, gather (sort_linux.go) makes one order of it all.

const (
	// windows of a walk at a time; who finds them in use goes on as the
	// directory lies.
	windows = 2
	// windowBudget is for some 75,000 names of 32 bytes, a million of which are
	// read within 3 % of the time that one order of them all takes.
	windowBudget = 3 << 20
	// arranged is how many entries are worth it.
	arranged = 16
)

// window takes the rest of d over, of which n bytes of records are in the buffer,
// if its order matters and there is memory for it.
func (w *worker) window(d *dir, fd, n int) bool {
	s := w.m.sorter
	if !w.m.sorts || w.m.served || d.extent == changes || d.rereading || w.capabilities.sorting.from == 0 || !s.reads.Load() && !w.isSmall(d) {
		return false
	}
	budget := min(windowBudget, w.capabilities.sorting.budget)
	b := s.window(d, budget)
	if b == nil {
		return false
	}
	w.cache.pin(d)
	more := true
	for {
		w.each(d, w.buf[:n], b.put)
		if !more || w.stopped() || len(b.names)+8*len(b.index)+bufferSize > budget {
			break
		}
		n, more = w.fill(d, fd)
	}
	if more && w.cache.keep(d) {
		w.pool.Give(item{dir: d})
	} else if more {
		defer w.pool.Push(item{dir: d})
	}
	if w.giveSlices(b) == 0 {
		w.endBatch(b)
	}
	return true
}

// window is memory for a window on d, if it is not all in use.
func (s *sorter) window(d *dir, budget int) *batch {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, b := range s.windows {
		if b == nil {
			b = newBatch(budget + bufferSize)
			b.window, s.windows[i] = true, b
		}
		if b.dir == nil {
			b.dir, b.names, b.index = d, b.names[:0], b.index[:0]
			return b
		}
	}
	return nil
}

// learn notes whether the labels met of late were wrong: in a large directory
// of such ones the order is gather's business.
func (w *worker) learn() {
	if reads := w.wrongStreak < guessAfter; w.m.sorts && w.m.sorter.reads.Load() != reads {
		w.m.sorter.reads.Store(reads)
	}
}

// arrange puts the n bytes of records in the buffer in the order of inodes, if that
// matters.
func (w *worker) arrange(d *dir, n int) {
	if !w.m.sorts || d.extent == changes || w.capabilities.sorting.from == 0 {
		return
	}
	order := w.order[:0]
	for off := 0; off < n; {
		r, length, err := sys.Parse(w.buf[off:n])
		if err != nil {
			return // records tells
		}
		order = append(order, r.Ino<<inoBits|uint64(off))
		off += length
	}
	if w.order = order; len(order) < arranged || slices.IsSorted(order) {
		return
	}
	slices.Sort(order)
	if w.other == nil {
		w.other = make([]byte, bufferSize)
	}
	to := w.other[:0]
	for _, word := range order {
		off := int(word & (1<<inoBits - 1))
		_, length, _ := sys.Parse(w.buf[off:n]) // it was parsed before
		to = append(to, w.buf[off:off+length]...)
	}
	w.buf, w.other = w.other, w.buf
}
