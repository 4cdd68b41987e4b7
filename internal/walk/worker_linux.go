// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"runtime"
	"slices"
	"syscall"
	"time"

	"github.com/fastlabel/fastlabel/internal/commit"
	"github.com/fastlabel/fastlabel/internal/mounts"
	"github.com/fastlabel/fastlabel/internal/order"
	"github.com/fastlabel/fastlabel/internal/sys"
	"github.com/fastlabel/fastlabel/internal/xattrio"
)

// item is a unit of work.
type item interface{ do(w *worker) }

// child is a directory to enter. There may be millions of them.
type child struct {
	parent *directory // expects it
	name   string     // with its NUL
}

func (c *child) do(w *worker) { w.enter(c.parent, c.name) }

// rest is the unread part of a directory, which is pinned for that.
type rest struct{ dir *directory }

func (r rest) do(w *worker) {
	w.cache.beginRest()
	w.scan(r.dir, r.dir.FD())
	w.cache.release(r.dir)
}

// unread is a directory, which expects it, to be read from its beginning.
type unread struct{ dir *directory }

func (u unread) do(w *worker) {
	if fd := w.acquire(u.dir); fd >= 0 {
		if e := sys.Rewind(fd, 0); e != 0 {
			w.labels.failDir(u.dir, "lseek", e)
		} else {
			w.scan(u.dir, fd)
		}
		w.cache.release(u.dir)
	}
}

// listed is entries that were read of a directory, which expects it.
type listed struct {
	dir     *directory
	entries []byte
}

func (l *listed) do(w *worker) {
	if fd := w.acquire(l.dir); fd >= 0 {
		w.entries(l.dir, fd, l.entries)
		w.cache.release(l.dir)
	}
}

// queue has a worker's items: its end of a pool, or those of a small tree.
type queue interface {
	Push(item)       // the worker is the first to take it
	PushOldest(item) // and the last
	Stopped() bool   // the item at hand is better finished soon
}

const (
	// bufferSize limits an item to some 2,000 names, 5 ms of labelling.
	bufferSize = 64 << 10
	// servedEntries are one item where calls wait for a server: 16 ms at a millisecond a call.
	servedEntries = 16
	// pacedRow names are a row where the caller slows the walk down: at
	// ten entries a second, a worker asks about once a second.
	pacedRow = 8
	// yieldAfter entries, a millisecond or two, a worker yields. The scheduler retakes
	// the P of one that has not done so for 10 ms, and starts a thread for it.
	yieldAfter = 1024
)

// worker is one goroutine's part of the walk. All but pos belongs to that goroutine.
type worker struct {
	walk   *Walk
	cache  *dirCache     // of the walk
	mount  *mounts.Mount // of the walk
	queue  queue
	small  *small // the queue of a small tree; nil: there is a pool
	pos    position
	labels labeller

	buf       []byte
	sorted    *order.Entries // of buf
	unyielded int            // entries since others had a turn
	parent    openParent     // of the last child
	visited   int            // the directory that was visited last, to be closed; or -1
}

func (w *worker) do(it item) {
	if _, enters := it.(*child); !enters {
		w.parent.release(w.cache)
		w.closeVisited()
	}
	it.do(w)
	w.pos.done(w.labels.tally)
}

// push makes work of it.
func (w *worker) push(it item) {
	w.queue.Push(it)
	w.walk.beginDue()
}

// pushChild makes work of a directory in d.
func (w *worker) pushChild(d *directory, name string) {
	w.cache.expect(d)
	w.push(&child{d, name})
}

// pushListed makes work of entries of d, which are copied.
func (w *worker) pushListed(d *directory, entries []byte) {
	w.cache.expect(d)
	w.push(&listed{d, slices.Clone(entries)})
}

// pushOtherMount makes work of the entry t of d for the pool, which knows the mounts.
func (w *worker) pushOtherMount(d *directory, t xattrio.Target) {
	w.small.large = true
	if t.Kind == sys.KindDir {
		w.pushChild(d, t.String()+"\x00")
	} else {
		w.pushListed(d, sys.AppendRecord(nil, t.Ino, t.Kind, []byte(t.String())))
	}
}

// pushRest makes work of what was not read of d, which is the last to be done. Where so many
// rests wait already it is the next, once after is called: memory rather than descriptors.
func (w *worker) pushRest(d *directory) (after func()) {
	if !w.cache.pinRest(d) {
		return func() { w.push(rest{d}) }
	}
	w.queue.PushOldest(rest{d})
	w.walk.beginDue()
	return func() {}
}

// acquire opens d, if it was closed, and pins it for an item that it expects. It returns -1
// if it could not: a directory that was removed is gone with all that was in it.
func (w *worker) acquire(d *directory) int {
	w.pos.at(d, nil)
	w.pos.now(w.labels.opens())
	fd, op, e := w.cache.acquire(d)
	if e != 0 && xattrio.VerdictOf(e) != xattrio.Gone {
		w.labels.failDir(d, op, e)
	}
	return fd
}

// scan reads one buffer of d, makes work of the rest of d, and labels what it has read.
func (w *worker) scan(d *directory, fd int) {
	w.pos.at(d, nil)
	w.readAhead(d, fd)
	n, more := w.fill(d, fd, 0)
	w.buffer(d, fd, n, more)
}

// buffer labels the n bytes of entries in the buffer, and makes work of the rest of d, if any.
func (w *worker) buffer(d *directory, fd, n int, more bool) {
	if top := w.walk.begins; d == w.walk.top && top.Listed != nil { // the first that is read of it
		if !more {
			top.Listed(w.buf[:n])
		}
		top.Listed = nil
	}
	switch {
	case w.small != nil && more:
		w.small.large = true
		w.cache.expect(d)
		w.push(unread{d})
		return
	case w.small != nil:
		w.small.check(w.labels.tally.Seen + int64(n/entrySize))
		w.entries(d, fd, w.buf[:n])
		return
	case more:
		var taken bool
		if n, taken = w.sortRest(d, fd, n); taken {
			return
		}
		defer w.pushRest(d)()
	}
	if !w.mount.Served {
		w.sortBuffer(d, fd, n)
		return
	}
	// Where each entry takes a server's time, one worker would take seconds for a buffer,
	// and all the others have nothing to do if it is all there is.
	left := w.buf[:n]
	for {
		end, _, err := firstOf(left, servedEntries)
		if err != nil || end == len(left) {
			break
		}
		w.pushListed(d, left[:end])
		left = left[end:]
	}
	w.entries(d, fd, left)
}

// entries labels the entries of d in buf: plain names in sweeps, the others one by one.
func (w *worker) entries(d *directory, fd int, buf []byte) {
	if op, e := w.labels.io.Enter(fd); e != 0 {
		w.labels.failDir(d, op, e)
		return
	}
	most := sys.RowLen
	if w.walk.job.Throttle != nil {
		most = pacedRow
	}
	for off := 0; off < len(buf) && !w.queue.Stopped(); {
		if w.small != nil && w.small.large {
			w.pushListed(d, buf[off:])
			return
		}
		next, err := w.pos.load(w.labels.tally, buf, off, most, w.mount.SkipInodes)
		w.rowOf(d, fd)
		if w.small != nil {
			w.small.check(w.labels.tally.Seen)
		}
		if err != nil {
			w.labels.failDir(d, "getdents64", err)
			return
		}
		off = next
	}
}

// rowOf labels the names of the row, which is of d.
func (w *worker) rowOf(d *directory, fd int) {
	r := &w.pos.row
	if w.unyielded += r.n; w.unyielded >= yieldAfter {
		w.unyielded = 0
		runtime.Gosched()
	}
	if w.walk.job.Throttle != nil && r.n > 0 {
		w.wait(fd, r.n)
	}
	w.checkRoot()
	sweeps := w.labels.sweeps(d.want)
	for i := 0; i < r.n && !w.queue.Stopped(); {
		end := i
		for sweeps && end < r.n && r.plain[end] {
			end++
		}
		if end > i {
			i = w.labels.sweep(d, fd, i, end)
			continue
		}
		w.entry(d, fd, r.entry(i))
		i++
	}
	// Large directories of wrong labels are gathered, and a worker that begins writes unread.
	if wrong := w.labels.wrong >= guessAfter; w.walk.wrong.Load() != wrong {
		w.walk.wrong.Store(wrong)
	}
}

// entry labels one entry of d, or makes work of it if it is a directory.
func (w *worker) entry(d *directory, fd int, e sys.Dirent) {
	l := &w.labels
	t := xattrio.Target{FD: fd, Name: e.Cname(), Kind: e.Kind, Ino: e.Ino}
	w.pos.name.Store(t.Name)
	if w.mount.Asks || w.mount.SkipInodes[e.Ino] {
		if o, is := l.excluded(t, d, t); is {
			l.count(d, o, 1)
			return
		}
	}
	if t.Kind == sys.KindUnknown {
		if st, errno := t.Stat(); errno == 0 {
			t.Kind = st.Kind
		} // else labelling it will say what is wrong with it
	}
	switch {
	case t.Kind != sys.KindDir:
		l.count(d, l.label(t, d), 1)
	case d.rereading && (l.io.Has(t, d.want.Label) || l.isUnlabelable(t, d)): // it needs no second visit
	default:
		l.tally.Found++
		w.pushChild(d, string(e.Name[:len(e.Name)+1]))
	}
}

// readAhead asks, once, for what is to be read of d.
func (w *worker) readAhead(d *directory, fd int) {
	if w.readsAhead() && !d.ahead {
		d.ahead = true
		w.walk.disk.ask(w.mount, fd, w.pos.now)
	}
}

// readsAhead reports whether what is near a directory is asked for with it.
func (w *worker) readsAhead() bool { return w.mount.Kind == sys.Ext4 && w.walk.disk.pays() }

// fill reads entries of d until the buffer, which has n bytes of them, is full, and says if there may
// be more.
func (w *worker) fill(d *directory, fd, n int) (int, bool) {
	for len(w.buf)-n >= sys.RecordMax {
		got, more := w.getdents(d, fd, n)
		if n += got; got == 0 {
			return n, more
		}
	}
	return n, true
}

// getdents reads entries of d once, into the buffer from n on.
func (w *worker) getdents(d *directory, fd, n int) (got int, more bool) {
	w.pos.now(xattrio.Getdents64)
	for try := 0; ; try++ {
		got, e := sys.Getdents(fd, w.buf[n:])
		verdict := xattrio.VerdictOf(e)
		switch {
		case e == 0:
			w.pos.moves.Add(1)
			return got, got > 0
		case e == syscall.EINVAL && n > 0:
			return 0, true // too little room for the next entry
		case verdict == xattrio.Gone:
			return 0, false // the directory itself was removed
		case verdict != xattrio.Again || !w.labels.again(try):
			w.labels.failDir(d, "getdents64", e)
			return 0, false
		}
	}
}

// wait has the caller, whose thread is not in the volume then, slow down the next entries of fd.
func (w *worker) wait(fd, entries int) {
	ctx := w.walk.ctx
	w.labels.io.Enter(w.mount.Outside())
	var err error
	w.pos.pause(func() { err = cmp.Or(w.walk.job.Throttle(ctx, entries), context.Cause(ctx)) })
	if err != nil {
		w.labels.halt(err)
	} else if _, e := w.labels.io.Enter(fd); e != 0 {
		w.labels.halt(&fs.PathError{Op: "fchdir", Path: w.mount.Path, Err: e})
	}
}

// checkRoot stops the run when its root is not its own any more.
func (w *worker) checkRoot() {
	for ours := w.walk.job.Ours; ours != nil && !w.queue.Stopped(); {
		w.pos.now(xattrio.Fgetxattr)
		switch err := ours(); {
		case err == nil:
			return
		case errors.Is(err, commit.ErrOvertaken):
			w.labels.halt(err)
			return
		}
		w.pos.pause(func() { time.Sleep(time.Millisecond) })
	}
}

// retire releases the worker's directories and memory, and takes its thread out of the volume.
func (w *worker) retire() {
	w.parent.release(w.cache)
	w.closeVisited()
	w.buf, w.sorted = nil, nil
	_, _ = w.pos.load(w.labels.tally, nil, 0, 0, nil) // nobody looks into the buffer any more
	w.pos.name.Store(nil)
	w.labels.io.Enter(w.mount.Outside())
}
