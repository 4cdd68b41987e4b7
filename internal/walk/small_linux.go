// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fastlabel/fastlabel/internal/mounts"
	"github.com/fastlabel/fastlabel/internal/sys"
)

// Most trees are small: a pod's secrets, tokens and configuration have up to twenty
// entries. One worker labels such a tree in the goroutine that calls Run. It has no pool,
// and the mount is not cloned. Each entry is pinned inside the mount before it is written.
//
// A tree turns out to be larger by its number of entries, by the time that it takes, by a
// directory that does not fit into the buffer, or by another mount in it. Then Grow makes
// the mount ready, and what is left is done there. No label is read or written twice. In a clone,
// in which entries need not be pinned, the worker goes on alone for a while; what it leaves goes
// to the pool.

const (
	// pinnedEntries are pinned at most where a clone can be made without the table of mounts. To
	// pin one costs some 5 µs, a clone 60 and on a busy machine a millisecond.
	pinnedEntries = 64
	// smallEntries are pinned at most elsewhere, with the table of mounts and a pool.
	smallEntries = 512
	// clonedEntries are labelled at most by one worker in a clone.
	clonedEntries = 2048
	// smallTime limits a worker alone: from a slow disk several read faster.
	smallTime = 5 * time.Millisecond
	// smallOpen limits its open directories.
	smallOpen = 16
	// guessSmall is guessAfter for the first entries of a small tree.
	guessSmall = 4
	// noMountsFrom is for how many entries it is worth a call to know that nothing is mounted in
	// the mount: then they are read by name, which saves two calls each.
	noMountsFrom = 8
	// entrySize is the usual size of an entry in the buffer.
	entrySize = 32
)

// small is the queue of a worker without a pool.
type small struct {
	walk  *Walk
	begin time.Time
	most  int64       // entries
	large bool        // what is left is not for this worker
	items []item      // to be done, the next last
	stop  atomic.Bool // it is never set: a row of a small tree is done to its end
}

func (s *small) Push(it item)       { s.items = append(s.items, it) }
func (s *small) PushOldest(it item) { s.items = slices.Insert(s.items, 0, it) }
func (s *small) Stopped() bool      { return s.walk.ctx.Err() != nil }

// runSmall labels what one worker can in the mount as it is, and then in the mount made ready for
// more, where what was opened is opened anew. It returns what is left.
func (k *Walk) runSmall(items []item) ([]item, error) {
	items = k.alone(items, smallEntries)
	if len(items) > 0 && k.ctx.Err() == nil {
		if err := k.job.Grow(); err != nil {
			return items, err
		}
		k.cache.move(k.top, k.mount.Top)
		if k.job.Way(k.mount) == sys.ByName && !k.mount.Served {
			items = k.alone(items, clonedEntries)
		}
	}
	return items, context.Cause(k.ctx) // it may have stopped in the last directory
}

// alone labels up to most entries of what the items lead to, and returns what is left.
func (k *Walk) alone(items []item, most int64) []item {
	s := &small{walk: k, begin: time.Now(), most: most, items: items}
	w := k.worker(s)
	w.small, w.labels.otherMount = s, w.pushOtherMount
	w.labels.wrong = guessAfter - guessSmall
	buf := buffers.Get().(*[bufferSize / 2]byte)
	w.buf = buf[:]
	w.pos.row.names.Stop = &s.stop
	for len(s.items) > 0 && !s.large && !s.Stopped() {
		last := len(s.items) - 1
		it := s.items[last]
		s.items = s.items[:last]
		w.do(it)
	}
	w.retire() // the buffer is another run's from here on
	buffers.Put(buf)
	return s.items
}

// buffers are those of small trees.
var buffers = sync.Pool{New: func() any { return new([bufferSize / 2]byte) }}

// check makes the tree too large for this worker when there are so many entries, or it has
// taken so long.
func (s *small) check(entries int64) {
	most, j, m := s.most, s.walk.job, s.walk.mount
	if entries >= pinnedEntries && m.Confined == mounts.Resolve && j.Kernel.Way == sys.ByName && j.HardLinks == LinksLabel && !j.ByName && m.NoMounts() {
		most = pinnedEntries
	}
	s.large = s.large || entries >= most || time.Since(s.begin) >= smallTime
}
