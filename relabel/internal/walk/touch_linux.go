// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"sync/atomic"
	"time"

	"github.com/fastlabel/fastlabel/relabel/internal/since"
	"github.com/fastlabel/fastlabel/relabel/internal/sys"
	"github.com/fastlabel/fastlabel/relabel/internal/xattrio"
)

// XFS looks a name up under a lock of its directory, which goes from one waiting thread to
// the next. Where several workers label in one directory of a cold disk, each name costs a
// change of threads, and few requests are in flight. So there a worker first touches what
// it has read, which is to look up one name of each cluster of inodes, as many do at once;
// and then labels it, for which it needs the disk no more, while no other does.

const (
	// cluster is how many inodes, by their numbers, XFS reads with one request.
	cluster = 32
	// worthTouching is how many names one that is touched must stand for, on average.
	worthTouching = 4
	// turnLook is how often a worker that waits for its turn looks whether to wait on.
	turnLook = 50 * time.Millisecond
)

// lookUp looks a name up, for which its inode is read.
var lookUp = sys.Statx

// turn is what one worker has at a time.
type turn struct {
	taken chan struct{} // full while one has it
	by    atomic.Pointer[worker]
}

// touches says whether records of d are to be touched.
func (w *worker) touches(d *Dir) bool {
	return w.m.Clusters && d.Note.extent != since.Changes && !d.Note.rereading && w.ahead.Pays()
}

// firsts are the entries in records that are the first of a cluster, of so many.
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

// labelTouched touches records of d, and labels them when it is its turn.
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
		if w.stopped() {
			break
		}
		w.name.Store(e.Cname())
		_, _ = lookUp(fd, e.Cname())
		w.touched.Add(int64(of / len(first)))
	}
	if !c.Close(0) {
		w.equip() // the buffer is another's now
		return
	}
	defer w.takeTurn()()
	w.records(d, fd, records)
}

// takeTurn waits while another has the turn and is not held up. The turn ends with end.
func (w *worker) takeTurn() (end func()) {
	end = func() {}
	w.unwatched(func() {
		for !w.stopped() {
			select {
			case w.turn.taken <- struct{}{}:
				w.turn.by.Store(w)
				end = func() { <-w.turn.taken }
				return
			case <-time.After(turnLook):
			}
			if by := w.turn.by.Load(); by != nil && by.watched.HeldUp.Load() {
				return
			}
		}
	})
	return end
}
