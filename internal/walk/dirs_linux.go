// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/fastlabel/fastlabel/internal/mounts"
	"github.com/fastlabel/fastlabel/internal/sys"
	"github.com/fastlabel/fastlabel/internal/xattrio"
)

// directory is one of a walk. Children point to their parents, so it lives as long
// as anything beneath it is under way. Its fields leave no gaps: a tree may be a million
// levels deep.
//
// Who owns what: the first five fields and depth never change. What the walk notes belongs
// to the worker that opened the directory, until others know of it; ahead then to the one that
// reads it. All else belongs to the cache's mutex.
type directory struct {
	parent *directory // nil at the top of a mount
	name   string     // with its NUL; "" at the top
	mount  *mounts.Mount
	own    string // the label that is wanted of it; "": it is left as it is
	want   *Want  // of what is in it

	// While it is closed and wanted: what it was, to be compared when it is found again.
	// Zero where it was closed for good, and lies on the way to one that is wanted.
	was     mounts.ID
	depth   int32 // levels below the top of its mount
	fd      int32 // -1 while it is closed
	pins    int32 // workers in it, the sorter, and a rest that waits: the descriptor stays
	pending int32 // items that will need it: better open
	shared  bool  // others may know of it; else the cache's mutex is not needed
	failed  bool  // it counts as failed: not all of its entries could be read

	ahead     bool    // what is to be read of it was asked for
	outcome   Outcome // in the tally, of its own label
	frozen    bool    // it is in a read-only subvolume, and what is in it is skipped too
	rereading bool    // it is the root, on its second reading
}

// FD is the descriptor of a directory that the caller is in.
func (d *directory) FD() int { return int(d.fd) }

// pathMost limits the bytes of names in the path of a message to PATH_MAX.
const pathMost = 4096

// Path is for messages only; the walk never looks one up. In a deep tree it is the top, "…", and
// the last pathMost bytes: the owner of the tree chooses its depth.
func (d *directory) Path(name string) string {
	var parts []string
	size := len(name)
	if name != "" {
		parts = append(parts, name)
	}
	for ; d.parent != nil; d = d.parent {
		if size += len(d.name); size > pathMost {
			parts = append(parts, "…")
			break
		}
		parts = append(parts, d.name[:len(d.name)-1])
	}
	slices.Reverse(parts)
	path := strings.TrimRight(d.mount.Path, "/")
	if len(parts) > 0 || path == "" {
		path += "/" + strings.Join(parts, "/")
	}
	return path
}

// dirCache has directories open that will be needed again, as many as the limit allows. Beyond it
// one is closed, and found again when its turn comes.
//
// What is pinned stays open whatever the limit: two directories a worker, half as
// many rests as the limit and one a worker, and three that are sorted. None of it
// grows with the tree.
//
// One mutex serves all workers: it is taken a few times a directory, against
// some ten microseconds of system calls for each.
type dirCache struct {
	mu    sync.Mutex
	limit int
	open  atomic.Int64
	rests int          // open directories with a rest that waits
	idle  []*directory // open and not pinned, the one that was so last at the end; not the top

	before map[*directory]int // written before there are workers: see move
}

// opened enters a directory that the caller has just opened, and is in.
func (c *dirCache) opened(parent *directory, name string, fd int, own string, want *Want) *directory {
	c.open.Add(1)
	return &directory{parent: parent, name: name, mount: parent.mount, depth: parent.depth + 1, own: own, want: want, fd: int32(fd), pins: 1}
}

func (c *dirCache) resize(limit int) {
	c.mu.Lock()
	c.limit = limit
	c.mu.Unlock()
}

// shrink makes the limit no more than are open now, and returns how many that is.
func (c *dirCache) shrink() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	open := max(2, int(c.open.Load()))
	c.limit = min(open, c.limit)
	return open
}

// expect counts one more item that will need d.
func (c *dirCache) expect(d *directory) {
	c.mu.Lock()
	d.share()
	d.pending++
	c.mu.Unlock()
}

// share notes that others may know of d. It writes once, in the worker that opened d:
// releaseOpen reads it unlocked.
func (d *directory) share() {
	if !d.shared {
		d.shared = true
	}
}

// acquire makes d open, step by step from the nearest open directory above if it is
// closed, and pins it, for one of the items that expected it.
func (c *dirCache) acquire(d *directory) (int, string, sys.Errno) {
	var way []*directory
	c.mu.Lock()
	d.pending--
	at := d
	for ; at.fd < 0; at = at.parent { // the top of a mount is never closed
		way = append(way, at)
	}
	c.pin(at)
	c.mu.Unlock()
	for _, next := range slices.Backward(way) {
		op, e := c.step(at, next)
		c.release(at)
		if e == syscall.ESTALE && c.removed(d) { // d itself: it may have left what was removed above it
			e = syscall.ENOENT
		}
		if e != 0 {
			return -1, op, e
		}
		at = next
	}
	return int(d.fd), "", 0
}

// pin pins d, which is open. c.mu is held.
func (c *dirCache) pin(d *directory) {
	d.share()
	if d.pins == 0 {
		if i := slices.Index(c.idle, d); i >= 0 {
			c.idle = slices.Delete(c.idle, i, i+1)
		}
	}
	d.pins++
}

// step opens d, which lies in at, and pins it. If it is another directory than before,
// that is an error: d was moved, and what is beneath it may lie where the walk has been.
func (c *dirCache) step(at, d *directory) (string, sys.Errno) {
	c.mu.Lock()
	was := d.was
	c.mu.Unlock()
	fd, op, e := at.mount.OpenDir(int(at.fd), sys.Cname(d.name))
	if e == 0 {
		var st sys.Stat
		if st, e = sys.Fstatx(fd); e == 0 && was != (mounts.ID{}) && mounts.IDOf(st) != was {
			e = syscall.ESTALE
		}
		if e != 0 {
			sys.Close(fd)
			op = "statx"
		}
	}
	if e == syscall.ENOENT || xattrio.VerdictOf(e) == xattrio.Changed {
		e = syscall.ESTALE
	}
	if e != 0 {
		return op, e
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if d.fd >= 0 { // another worker was faster
		sys.Close(fd)
	} else {
		d.fd = int32(fd)
		c.open.Add(1)
	}
	c.pin(d)
	return "", 0
}

// move replaces the descriptor of the top by fd, the same directory in another mount. All others, of
// which none is pinned, are found again beneath it. Their descriptors stay open until clear, to tell
// one that was removed from one that was renamed.
func (c *dirCache) move(top *directory, fd int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	top.fd = int32(fd)
	c.before = make(map[*directory]int)
	for _, d := range c.idle {
		c.before[d] = c.identify(d)
	}
	c.idle = nil
}

// removed reports whether d, which is not found any more, was removed.
func (c *dirCache) removed(d *directory) bool {
	fd, ok := c.before[d]
	if !ok {
		return false
	}
	st, e := sys.Fstatx(fd)
	return e == 0 && st.Links == 0
}

// release takes a pin back. A directory without pins is closed if no item will need it, else idle.
func (c *dirCache) release(d *directory) {
	if fd := c.releaseOpen(d); fd >= 0 {
		sys.Close(fd)
	}
}

// releaseOpen is release by the worker that opened d. If no other worker knows of d, the
// descriptor is the caller's. Else it returns -1.
func (c *dirCache) releaseOpen(d *directory) int {
	if d.shared {
		c.unpin(d, 0)
		return -1
	}
	return c.forget(d)
}

// unpin is release for a worker that pinned d once, and worked on owed more items that
// expected d.
func (c *dirCache) unpin(d *directory, owed int) {
	c.mu.Lock()
	d.pending -= int32(owed)
	d.pins--
	if d.pins > 0 || d.parent == nil {
		c.mu.Unlock()
		return
	}
	if d.pending <= 0 {
		fd := c.forget(d)
		c.mu.Unlock()
		sys.Close(fd) // not under the mutex: it may take its time
		return
	}
	c.idle = append(c.idle, d)
	for int(c.open.Load()) > c.limit && c.evict() {
		continue
	}
	c.mu.Unlock()
}

// closeIdle closes one directory that can be found again, and reports if there was one.
func (c *dirCache) closeIdle() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.evict()
}

// pinSorted pins d, which the caller is in, while it is sorted.
func (c *dirCache) pinSorted(d *directory) {
	c.mu.Lock()
	c.pin(d)
	c.mu.Unlock()
}

// pinRest pins d for its rest, which needs this very descriptor: the position in the directory is in
// it. It reports whether the rest may wait, or so many wait already that it must be next.
func (c *dirCache) pinRest(d *directory) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pin(d)
	c.rests++
	return c.rests <= c.limit/2
}

// beginRest notes that a rest waits no more. The pin stays.
func (c *dirCache) beginRest() {
	c.mu.Lock()
	c.rests--
	c.mu.Unlock()
}

// evict closes an idle directory, if there is one: that with the smallest depth gap for its
// distance from the newest, the oldest on ties, and never the newest of several. In a deep tree
// those that stay open lie farther apart the higher they are, so that to reopen one takes a few
// steps, not one for each level: 20,000 levels of two directories would take hours.
func (c *dirCache) evict() bool {
	if len(c.idle) == 0 {
		return false
	}
	victim, gap, far := 0, int64(0), int64(1)
	above := int32(0)
	last := len(c.idle) - 1
	for i, d := range c.idle[:last] {
		g := int64(c.idle[i+1].depth - above)
		f := max(1, int64(c.idle[last].depth-d.depth)+1) // below 1 in another branch
		above = d.depth
		if i == 0 || g*far < gap*f {
			victim, gap, far = i, g, f
		}
	}
	sys.Close(c.identify(c.idle[victim]))
	c.idle = slices.Delete(c.idle, victim, victim+1)
	return true
}

// identify is forget, and notes which directory is to be found again.
func (c *dirCache) identify(d *directory) int {
	d.was = mounts.ID{Dev: ^uint64(0)} // which nothing has that is found again
	if st, e := sys.Fstatx(int(d.fd)); e == 0 {
		d.was = mounts.IDOf(st)
	}
	return c.forget(d)
}

// forget returns the descriptor of a directory that is to be closed.
func (c *dirCache) forget(d *directory) int {
	fd := int(d.fd)
	d.fd = -1
	c.open.Add(-1)
	return fd
}

// clear closes all but what is pinned, and the top.
func (c *dirCache) clear() {
	for c.closeIdle() {
		continue
	}
	for _, fd := range c.before {
		sys.Close(fd)
	}
}

// openParent is the directory of the child that a worker entered last. Consecutive
// siblings share one acquire.
type openParent struct {
	dir  *directory // nil: none
	owed int        // items that expected it, and were worked on
}

// acquire acquires d for an item that expected it, in place of the one before.
func (h *openParent) acquire(c *dirCache, d *directory) (int, string, sys.Errno) {
	if h.dir == d {
		h.owed++
		return d.FD(), "", 0
	}
	h.release(c)
	fd, op, e := c.acquire(d)
	if e == 0 {
		h.dir = d
	}
	return fd, op, e
}

func (h *openParent) release(c *dirCache) {
	if h.dir != nil {
		c.unpin(h.dir, h.owed)
		*h = openParent{}
	}
}
