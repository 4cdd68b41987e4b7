// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fastlabel/fastlabel/relabel/internal/mounts"
	"github.com/fastlabel/fastlabel/relabel/internal/sys"
	"github.com/fastlabel/fastlabel/relabel/internal/xattrio"
)

// Most trees are small: a pod's secrets, tokens and configuration have up to twenty
// entries. One worker labels such a tree in the goroutine that calls Run. It has no pool,
// and the mount is not cloned. Each entry is pinned inside the mount before it is written.
//
// A tree turns out to be larger by its number of entries, by the time that it takes, by a
// directory that does not fit into the buffer, or by another mount in it. Then Grow makes
// the mount ready, and what is left is done there: directories to enter, records that were
// read and not labelled, and directories to be read from their beginning of which nothing
// was labelled. No label is read or written twice. In a clone, in which entries need not be
// pinned, the worker goes on alone for a while; what it leaves goes to the pool.

const (
	// pinnedEntries is how many entries are pinned where a clone is to be had without the
	// table of mounts. To pin one costs some 5 µs, a clone 60 and on a busy machine, where its
	// end waits for all processors, a millisecond.
	pinnedEntries = 64
	// smallEntries is how many are pinned elsewhere. A clone, the table of mounts and a
	// pool cost as much as some hundred entries do.
	smallEntries = 512
	// clonedEntries is how many one worker labels in a clone, in smallTime.
	clonedEntries = 2048
	// smallTime is how long a worker goes on alone. From a slow disk several workers read
	// faster.
	smallTime = 5 * time.Millisecond
	// smallOpen is how many of its directories are open at most.
	smallOpen = 16
	// guessSmall is guessAfter for the first entries of a small tree.
	guessSmall = 4
	// bareFrom is for how many entries it is worth a call to know that nothing is mounted in
	// the mount: then they are read by name, which saves two calls each.
	bareFrom = 8
	// recordSize is the usual size of a directory's record.
	recordSize = 32
)

// solo is a worker without a pool.
type solo struct {
	begin time.Time
	most  int64       // entries
	large bool        // what is left is not for this worker
	rest  []item      // to be done, the next last
	stop  atomic.Bool // it is never set: a row of a small tree is done to its end
}

// small labels what the items lead to while that are no more than most entries, and returns
// what is left.
func (k *Walk) small(items []item, most int64) []item {
	w := k.worker(nil)
	w.solo = &solo{begin: time.Now(), most: most, rest: items}
	w.wrongStreak = guessAfter - guessSmall
	buf := buffers.Get().(*[bufferSize / 2]byte)
	w.buf = buf[:]
	w.row.names.Stop = &w.solo.stop
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

// check makes the tree too large for this worker when there are so many entries, or it has
// taken so long.
func (w *worker) check(entries int64) {
	s, most := w.solo, w.solo.most
	if entries >= pinnedEntries && w.m.Confined == mounts.Resolve && w.Kernel.Way == sys.ByName && w.HardLinks == LinksLabel && !w.ByName && w.m.Bare() {
		most = pinnedEntries
	}
	s.large = s.large || entries >= most || time.Since(s.begin) >= smallTime
}

// later makes work of records of d, which were not labelled, and are copied.
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
	w.push(item{in: d, name: t.String() + "\x00"})
}

// enlarge makes the mount ready for more, and labels in it what one worker can. What was opened
// in it is opened anew when it is needed: in the clone, if there is one.
func (k *Walk) enlarge(items []item) ([]item, error) {
	if err := k.Grow(); err != nil {
		return items, err
	}
	k.cache.move(k.top, k.m.Top)
	if k.Way(k.m) == sys.ByName && !k.m.Served {
		items = k.small(items, clonedEntries)
	}
	return items, nil
}
