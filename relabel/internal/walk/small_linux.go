// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fastlabel/fastlabel/relabel/internal/sys"
	"github.com/fastlabel/fastlabel/relabel/internal/xattrio"
)

// Most trees are small: a pod's secrets, tokens and configuration have up to twenty
// entries. One worker labels such a tree in the goroutine that calls Run. It has no pool,
// and the mount is not cloned: a clone takes the lock of all mounts of the machine. Each
// entry is pinned inside the mount before it is written.
//
// A tree turns out to be large by its number of entries, by the time that it takes, by a
// directory that does not fit into the buffer, or by another mount in it. Then Grow makes
// the mount ready for workers, and what is left goes to the pool: directories to enter,
// records that were read and not labelled, and directories to be read from their beginning
// of which nothing was labelled. No label is read or written twice.

const (
	// smallEntries is how many entries a small tree has. A clone, the table of mounts and
	// a pool cost as much as some hundred entries do here.
	smallEntries = 512
	// smallTime is how long they take from memory. From a slow disk several workers read
	// faster.
	smallTime = 5 * time.Millisecond
	// smallOpen is how many of its directories are open at most.
	smallOpen = 16
)

// solo is a worker without a pool.
type solo struct {
	begin time.Time
	large bool        // what is left is for the pool
	rest  []item      // to be done, the next last
	stop  atomic.Bool // it is never set: a row of a small tree is done to its end
}

// small labels all that the items lead to while that is little, and returns what is left.
func (k *Walk) small(items []item) []item {
	w := k.worker(nil)
	w.solo = &solo{begin: time.Now(), rest: items}
	buf := buffers.Get().(*[bufferSize / 2]byte)
	w.buf = buf[:]
	w.row.names.Stop = &w.solo.stop
	k.enlist(w)
	for len(w.solo.rest) > 0 && !w.solo.large && !w.stopped() {
		last := len(w.solo.rest) - 1
		it := w.solo.rest[last]
		w.solo.rest = w.solo.rest[:last]
		w.do(it)
	}
	w.retire() // the buffer is another run's from here on
	buffers.Put(buf)
	return w.solo.rest
}

// buffers are what workers of small trees read into.
var buffers = sync.Pool{New: func() any { return new([bufferSize / 2]byte) }}

// check makes the tree a large one when it has taken enough entries or time.
func (s *solo) check(entries int64) {
	s.large = s.large || entries >= smallEntries || time.Since(s.begin) >= smallTime
}

// later leaves records of d for the pool, which were not labelled.
func (w *worker) later(d *Dir, records []byte) {
	w.cache.expect(d)
	w.push(labelling(d, slices.Clone(records)))
}

// otherMount leaves the entry t of d to the pool, which knows the mounts.
func (w *worker) otherMount(d *Dir, t xattrio.Target) {
	w.solo.large = true
	if t.Kind != sys.KindDir {
		w.later(d, sys.AppendRecord(nil, t.Ino, t.Kind, []byte(t.String())))
		return
	}
	w.cache.expect(d)
	w.push(entering(d, t.String()+"\x00"))
}

// enlarge makes the mount ready for workers. What was opened in it is opened anew when it is
// needed: in the clone, if there is one.
func (k *Walk) enlarge() error {
	if err := k.Grow(); err != nil {
		return err
	}
	k.cache.move(k.top, k.m.Top)
	return nil
}
