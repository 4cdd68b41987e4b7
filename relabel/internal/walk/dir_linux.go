// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/fastlabel/fastlabel/relabel/internal/mounts"
	"github.com/fastlabel/fastlabel/relabel/internal/sys"
	"github.com/fastlabel/fastlabel/relabel/internal/xattrio"
)

// Dir is a directory of the walk. Children point to their parents, so a Dir
// lives as long as anything beneath it is under way.
//
// Who owns what: name, parent, mount and want never change. All else belongs to the
// cache's mutex, but for outcome, which belongs to the worker that opened it.
type Dir struct {
	parent *Dir // nil at the top of a mount
	mount  *mounts.Mount
	name   string // with its NUL; "" at the top
	want   string // the label that it is to have, and what is in it

	deep    int32 // how many levels below the top of its mount
	fd      int32 // -1 while it is closed
	pins    int32 // workers in it, gatherings of it, and a rest that waits: the descriptor stays
	pending int32 // items that will need it: better kept open
	// While it is closed and wanted: what it was, so that the directory
	// found again by name is known to be the same. Nothing is known of one
	// that was closed for good; it may lie on the way to one that is wanted.
	was mounts.ID
	// The list of open directories with no worker in them, oldest first.
	newer, older *Dir

	labelledBelow uint64  // the inode number below which its entries were gathered and labelled
	shared        bool    // others may know of it; else the cache's mutex is not needed
	extent        extent  // how much of it is looked at
	asListed      bool    // known to need no order of inodes
	outcome       Outcome // what the tally holds for its own label
	spoiled       bool    // its entries could not all be read: counted as failed
	rereading     bool    // the root on its second reading: see reread
}

// pathMost is how many bytes of names a path in a message has, which is as long as a
// path may be that the kernel takes.
const pathMost = 4096

// Path is for messages only; the walk never looks one up. In a deep tree it is the
// top, "…", and the last pathMost bytes: the owner of the tree chooses its depth, so
// neither the length nor the work for it may grow with that.
func (d *Dir) Path(name string) string {
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
	var b strings.Builder
	b.WriteString(strings.TrimRight(d.mount.Path, "/"))
	for i := len(parts) - 1; i >= 0; i-- {
		b.WriteByte('/')
		b.WriteString(parts[i])
	}
	if b.Len() == 0 {
		return "/"
	}
	return b.String()
}

// cache keeps directories open that will be needed again, as many as the limit
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
type cache struct {
	mu             sync.Mutex
	limit          int
	open           atomic.Int64
	rests          int // open directories with a rest that waits
	oldest, newest *Dir
}

// opened enters a directory that the caller has just opened, and is in. Nobody
// else knows of it until something in it is expected or its rest kept.
func (c *cache) opened(parent *Dir, name, want string, fd int) *Dir {
	c.open.Add(1)
	d := parent.child(name, fd)
	d.pins, d.want = 1, want
	return d
}

// child is the directory name, with its NUL, in d. Nobody is in it.
func (d *Dir) child(name string, fd int) *Dir {
	return &Dir{parent: d, mount: d.mount, name: name, deep: d.deep + 1, fd: int32(fd)}
}

func (c *cache) resize(limit int) {
	c.mu.Lock()
	c.limit = limit
	c.mu.Unlock()
}

func (c *cache) most() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.limit
}

// share is written once, by the worker that opened d: release reads it unlocked.
func (d *Dir) share() {
	if !d.shared {
		d.shared = true
	}
}

// expect says that one more item will need d.
func (c *cache) expect(d *Dir) {
	c.mu.Lock()
	d.share()
	d.pending++
	c.mu.Unlock()
}

// acquire makes d open and pins it, for one of the items that expected it.
func (c *cache) acquire(d *Dir) (int, string, sys.Errno) {
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
func (c *cache) reenter(d *Dir) (int, string, sys.Errno) {
	var way []*Dir
	c.mu.Lock()
	at := d
	for at.fd < 0 {
		way = append(way, at)
		at = at.parent // the top of a mount is never closed
	}
	c.unlist(at)
	at.pins++
	c.mu.Unlock()
	for i := len(way) - 1; i >= 0; i-- {
		next := way[i]
		c.mu.Lock()
		was := next.was
		c.mu.Unlock()
		fd, op, e := at.mount.OpenDir(int(at.fd), sys.Cname(next.name[:len(next.name)-1]))
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
			c.release(at)
			if e == syscall.ENOENT || xattrio.Judge(e) == xattrio.Changed {
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
		c.release(at)
		at = next
	}
	return int(d.fd), "", 0
}

// release takes a pin back. A directory without pins is closed if no item will need it;
// else it is listed, and the oldest makes room.
func (c *cache) release(d *Dir) {
	if !d.shared {
		sys.Close(c.forget(d))
		return
	}
	c.unpin(d, 0)
}

// unpin is release by one that pinned d once and did owed items more that expected
// it.
func (c *cache) unpin(d *Dir, owed int) {
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

// shed closes one directory that can be found again, and says if there was one.
func (c *cache) shed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.oldest == nil {
		return false
	}
	c.evict()
	return true
}

// keep pins d for its rest, which needs this very descriptor: the position in
// the directory is in it. It says whether the rest may wait for its turn, or
// so many wait already that it must be next.
func (c *cache) keep(d *Dir) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	d.share()
	d.pins++
	c.rests++
	return c.rests <= c.limit/2
}

// pin keeps d open for a gathering. The caller is in d.
func (c *cache) pin(d *Dir) {
	c.mu.Lock()
	d.share()
	d.pins++
	c.mu.Unlock()
}

// spoil notes that not all entries of d could be read, and says whether that is new.
func (c *cache) spoil(d *Dir) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	was := d.spoiled
	d.spoiled = true
	return !was
}

func (c *cache) kept() {
	c.mu.Lock()
	c.rests--
	c.mu.Unlock()
}

// victim is the directory to evict: the one with the smallest depth gap for its
// distance from the newest, the oldest on ties, and never the newest. In a deep tree
// those that stay open lie farther apart the higher they are, so that reopening a
// directory takes a few steps and not one for each level: 20,000 levels of two
// directories would take hours.
func (c *cache) victim() *Dir {
	best, gap, far := c.oldest, int64(0), int64(1)
	above := int32(0)
	for d := c.oldest; d != nil && d.newer != nil; d = d.newer {
		g, f := int64(d.newer.deep-above), int64(c.newest.deep-d.deep)+1
		above = d.deep
		if f < 1 { // not above the newest: another branch
			f = 1
		}
		if d == c.oldest || g*far < gap*f {
			best, gap, far = d, g, f
		}
	}
	return best
}

func (c *cache) evict() {
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
func (c *cache) forget(d *Dir) int {
	fd := int(d.fd)
	d.fd = -1
	c.open.Add(-1)
	return fd
}

func (c *cache) unlist(d *Dir) {
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

// clear closes what a stopped walk left open: directories in the list, and
// those whose rest waits among the items that were left.
func (c *cache) clear(left []item) {
	for _, it := range left {
		if it.kind == readRest {
			c.kept()
			c.release(it.dir)
		}
	}
	for c.shed() {
		continue
	}
}
