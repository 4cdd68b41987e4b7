// SPDX-License-Identifier: Apache-2.0

package dirs

import (
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/fastlabel/fastlabel/relabel/internal/mounts"
	"github.com/fastlabel/fastlabel/relabel/internal/sys"
	"github.com/fastlabel/fastlabel/relabel/internal/xattrio"
)

// Cache keeps directories open that will be needed again, as many as the limit
// allows. Beyond it one is closed, and found again when its turn comes: step by
// step from the nearest open directory above it. A walk in depth needs the
// deepest first, so that those far above may lie far apart (see victim).
//
// What is pinned stays open whatever the limit: two directories a worker, half as
// many rests as the limit and one a worker, and three gatherings: one of a whole
// directory and the windows. None of it grows with the tree.
//
// One mutex serves all workers: it is taken a few times a directory, against
// some ten microseconds of system calls for each.
type Cache[N any] struct {
	mu             sync.Mutex
	limit          int
	open           atomic.Int64
	rests          int // open directories with a rest that waits
	oldest, newest *Dir[N]

	before map[*Dir[N]]int // written before there are workers: see Move
}

// Opened enters a directory that the caller has just opened, and is in. No other
// worker knows of it until something in it is expected or its rest kept.
func (c *Cache[N]) Opened(parent *Dir[N], name string, fd int, n N) *Dir[N] {
	c.open.Add(1)
	d := parent.child(name, fd)
	d.pins, d.Note = 1, n
	return d
}

// Resize changes how many directories may be open.
func (c *Cache[N]) Resize(limit int) {
	c.mu.Lock()
	c.limit = limit
	c.mu.Unlock()
}

// Shrink has no more open than there are now, and says how many that is.
func (c *Cache[N]) Shrink() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	open := max(2, int(c.open.Load()))
	c.limit = min(open, c.limit)
	return open
}

// share is written once, by the worker that opened d: release reads it unlocked.
func (d *Dir[N]) share() {
	if !d.shared {
		d.shared = true
	}
}

// Expect says that one more item will need d.
func (c *Cache[N]) Expect(d *Dir[N]) {
	c.mu.Lock()
	d.share()
	d.pending++
	c.mu.Unlock()
}

// Acquire makes d open and pins it, for one of the items that expected it.
func (c *Cache[N]) Acquire(d *Dir[N]) (int, string, sys.Errno) {
	c.mu.Lock()
	d.pending--
	if d.fd >= 0 {
		c.unlist(d)
		d.pins++
		fd := int(d.fd)
		c.mu.Unlock()
		return fd, "", 0
	}
	c.mu.Unlock()
	return c.reenter(d)
}

// reenter opens d again, step by step from the nearest open directory above,
// and pins it. A step that leads elsewhere than before is an error: the
// directory was moved, and what is beneath it may lie where the walk has been.
func (c *Cache[N]) reenter(d *Dir[N]) (int, string, sys.Errno) {
	var way []*Dir[N]
	c.mu.Lock()
	at := d
	for at.fd < 0 {
		way = append(way, at)
		at = at.Parent // the top of a mount is never closed
	}
	c.unlist(at)
	at.pins++
	c.mu.Unlock()
	for i := len(way) - 1; i >= 0; i-- {
		next := way[i]
		c.mu.Lock()
		was := next.was
		c.mu.Unlock()
		fd, op, e := at.mount.OpenDir(int(at.fd), sys.Cname(next.Name[:len(next.Name)-1]))
		if e == 0 {
			var st sys.Stat
			if st, e = sys.Fstatx(fd); e != 0 || was != (mounts.ID{}) && mounts.IDOf(st) != was {
				sys.Close(fd)
				op = "statx"
				if e == 0 {
					e = syscall.ESTALE
				}
			}
		}
		if e != 0 {
			c.Release(at)
			switch {
			case c.removed(next):
				e = syscall.ENOENT
			case e == syscall.ENOENT || xattrio.Judge(e) == xattrio.Changed:
				e = syscall.ESTALE
			}
			return -1, op, e
		}
		c.mu.Lock()
		if next.fd >= 0 { // another worker was faster
			c.unlist(next)
			sys.Close(fd)
		} else {
			next.fd = int32(fd)
			c.open.Add(1)
		}
		next.pins++
		c.mu.Unlock()
		c.Release(at)
		at = next
	}
	return int(d.fd), "", 0
}

// Move has fd, the same directory in another mount, in place of the descriptor of the top.
// All other directories are found again beneath it. What they are open as is kept until
// Clear, to tell one that was removed from one that was renamed. No directory is pinned.
func (c *Cache[N]) Move(top *Dir[N], fd int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	top.fd = int32(fd)
	c.before = make(map[*Dir[N]]int)
	for c.oldest != nil {
		d := c.oldest
		c.unlist(d)
		if st, e := sys.Fstatx(int(d.fd)); e == 0 {
			d.was = mounts.IDOf(st)
		}
		c.before[d] = c.forget(d)
	}
}

// removed reports whether d, which is not found any more, was removed.
func (c *Cache[N]) removed(d *Dir[N]) bool {
	fd, ok := c.before[d]
	if !ok {
		return false
	}
	st, e := sys.Fstatx(fd)
	return e == 0 && st.Links == 0
}

// Release takes a pin back. A directory without pins is closed if no item will need it;
// else it is listed, and the oldest makes room.
func (c *Cache[N]) Release(d *Dir[N]) {
	if !d.shared {
		sys.Close(c.forget(d))
		return
	}
	c.Unpin(d, 0)
}

// Unpin is Release for a worker that pinned d once, and worked on owed more items that
// expected d.
func (c *Cache[N]) Unpin(d *Dir[N], owed int) {
	c.mu.Lock()
	d.pending -= int32(owed)
	d.pins--
	if d.pins > 0 || d.Parent == nil {
		c.mu.Unlock()
		return
	}
	if d.pending <= 0 {
		fd := c.forget(d)
		c.mu.Unlock()
		sys.Close(fd) // not under the mutex: it may take its time
		return
	}
	d.older = c.newest
	if c.newest != nil {
		c.newest.newer = d
	} else {
		c.oldest = d
	}
	c.newest = d
	for int(c.open.Load()) > c.limit && c.oldest != nil {
		c.evict()
	}
	c.mu.Unlock()
}

// Shed closes one directory that can be found again, and says if there was one.
func (c *Cache[N]) Shed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.oldest == nil {
		return false
	}
	c.evict()
	return true
}

// Keep pins d for its rest, which needs this very descriptor: the position in
// the directory is in it. It says whether the rest may wait for its turn, or
// so many wait already that it must be next.
func (c *Cache[N]) Keep(d *Dir[N]) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	d.share()
	d.pins++
	c.rests++
	return c.rests <= c.limit/2
}

// Pin keeps d open for a gathering. The caller is in d.
func (c *Cache[N]) Pin(d *Dir[N]) {
	c.mu.Lock()
	d.share()
	d.pins++
	c.mu.Unlock()
}

// Spoil notes that not all entries of d could be read, and says whether that is new.
func (c *Cache[N]) Spoil(d *Dir[N]) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	was := d.spoiled
	d.spoiled = true
	return !was
}

// Kept is the end of a Keep: the rest is worked on. The pin stays.
func (c *Cache[N]) Kept() {
	c.mu.Lock()
	c.rests--
	c.mu.Unlock()
}

// victim is the directory to evict: the one with the smallest depth gap for its
// distance from the newest, the oldest on ties, and never the newest. In a deep tree
// those that stay open lie farther apart the higher they are, so that reopening a
// directory takes a few steps and not one for each level: 20,000 levels of two
// directories would take hours.
func (c *Cache[N]) victim() *Dir[N] {
	best, gap, far := c.oldest, int64(0), int64(1)
	above := int32(0)
	for d := c.oldest; d != nil && d.newer != nil; d = d.newer {
		g, f := int64(d.newer.Depth-above), int64(c.newest.Depth-d.Depth)+1
		above = d.Depth
		if f < 1 { // not above the newest: another branch
			f = 1
		}
		if d == c.oldest || g*far < gap*f {
			best, gap, far = d, g, f
		}
	}
	return best
}

func (c *Cache[N]) evict() {
	d := c.victim()
	was := mounts.ID{Dev: ^uint64(0)} // which nothing has that is found again
	if st, e := sys.Fstatx(int(d.fd)); e == 0 {
		was = mounts.IDOf(st)
	}
	d.was = was
	c.unlist(d)
	sys.Close(c.forget(d))
}

// forget gives back the descriptor of a directory that is to be closed.
func (c *Cache[N]) forget(d *Dir[N]) int {
	fd := int(d.fd)
	d.fd = -1
	c.open.Add(-1)
	return fd
}

func (c *Cache[N]) unlist(d *Dir[N]) {
	if c.oldest != d && d.older == nil {
		return // not listed
	}
	if d.older != nil {
		d.older.newer = d.newer
	} else {
		c.oldest = d.newer
	}
	if d.newer != nil {
		d.newer.older = d.older
	} else {
		c.newest = d.older
	}
	d.newer, d.older = nil, nil
}

// Clear closes what a stopped walk left open, once the rests that wait were released.
func (c *Cache[N]) Clear() {
	for c.Shed() {
		continue
	}
	for _, fd := range c.before {
		sys.Close(fd)
	}
}

// Hand is Release by the worker that opened d. If no other worker knows of d it is not
// closed: the descriptor is the caller's. Else it is -1.
func (c *Cache[N]) Hand(d *Dir[N]) int {
	if d.shared {
		c.Release(d)
		return -1
	}
	return c.forget(d)
}
