// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"time"

	"github.com/fastlabel/fastlabel/relabel/internal/mounts"
	"github.com/fastlabel/fastlabel/relabel/internal/sys"
	"github.com/fastlabel/fastlabel/relabel/internal/xattrio"
)

// XFS looks a name up under a lock of its directory, which goes from one waiting thread to
// the next. Where several workers label in one directory of a cold disk, each name costs a
// change of threads, and few requests are in flight. So there a worker first touches what it
// has read, which is to look up one name of each cluster of inodes, as many do at once; and
// then labels it, mostly from memory, while others touch. It does so in its turn: which
// worker labels is in Walk.turn.

const (
	// cluster is how many inodes, by their numbers, XFS reads with one request.
	cluster = 32
	// worthTouching is how many names one that is touched must stand for, on average.
	worthTouching = 4
)

// lookUp looks a name up, for which its inode is read.
var lookUp = sys.Statx

// touches says whether records of d are to be touched: in a clone, where no name leads to
// another mount.
func (w *worker) touches(d *Dir) bool {
	return w.m.Clusters && w.m.Confined == mounts.Clone && !d.Note.rereading && w.ahead.Pays()
}

// firsts are the entries in records, of so many, that are in another cluster than the one
// before.
func firsts(records []byte) (first []sys.Dirent, of int) {
	last := ^uint64(0)
	for len(records) > 0 {
		e, length, err := sys.Parse(records)
		if err != nil {
			break // who labels them tells
		}
		records = records[length:]
		if sys.IsDot(e.Name) {
			continue
		}
		of++
		if at := e.Ino / cluster; at != last {
			first, last = append(first, e), at
		}
	}
	return first, of
}

// labelTouched touches records of d, and labels them in its turn.
func (w *worker) labelTouched(d *Dir, fd int, records []byte) {
	first, of := firsts(records)
	if len(first)*worthTouching > of {
		w.records(d, fd, records)
		return
	}
	c := w.chunk.Load() // from which another can take them, if a call hangs
	c.dir = d
	w.countsMu.Lock()
	_, _ = c.Load(records, 0, 1, nil)
	w.countsMu.Unlock()
	w.now(xattrio.Statx)
	for _, e := range first {
		w.name.Store(e.Cname())
		_, errno := lookUp(fd, e.Cname())
		if errno != 0 && xattrio.Judge(errno) != xattrio.Gone || c.Row.Next.Load() != 0 || w.stopped() {
			break // who labels them tells
		}
		w.touched.Add(int64(of / len(first)))
	}
	if !c.Close(0) {
		w.equip() // the buffer is another's now
		return
	}
	w.takeTurn()
	w.records(d, fd, records)
	w.turn.CompareAndSwap(w, nil)
}

// takeTurn waits while another worker has the turn, unless that is held up or waits for
// its caller.
func (w *worker) takeTurn() {
	for !w.stopped() {
		by := w.turn.Load()
		if (by == nil || by.paused.Load() || by.watched.HeldUp.Load()) && w.turn.CompareAndSwap(by, w) {
			return
		}
		time.Sleep(time.Millisecond)
		w.pauses.Add(1) // it moves: beside a call that hangs, a run whose turn goes round is not stalled
	}
}
