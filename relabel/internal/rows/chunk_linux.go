// SPDX-License-Identifier: Apache-2.0

package rows

import (
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/fastlabel/fastlabel/relabel/internal/sys"
)

// Chunk is a buffer of directory records, and the row that a worker has come to.
type Chunk struct {
	Row   sys.Row
	N     int // names in the row: . and .. are none
	Plain [sys.RowLen]bool

	records []byte       // whole
	left    atomic.Int32 // the name at which another worker took the rest
}

const (
	closed = -1 // nothing can be taken
	taking = -2 // another worker is about to take it
	handed = -3 // it has been taken
)

// Begin readies c, of which nothing can be taken. stop ends its rows.
func (c *Chunk) Begin(stop *atomic.Bool) {
	c.Row.Next.Store(closed)
	c.Row.Stop = stop
}

// Load makes a row of the records at off, of so many names at most, and returns where the
// next begins. The caller holds the mutex that it holds for Reached.
func (c *Chunk) Load(records []byte, off, most int, special map[uint64]bool) (int, error) {
	c.records, c.N = records, 0
	c.Row.Base, c.Row.Head = unsafe.SliceData(records), sys.NameAt
	var err error
	for c.N < most && off < len(records) {
		e, length, bad := sys.Parse(records[off:])
		if bad != nil {
			err = bad
			break
		}
		if !sys.IsDot(e.Name) {
			c.Row.At[c.N] = uint32(off)
			c.Plain[c.N] = IsPlain(e, special)
			c.N++
		}
		off += length
	}
	c.Row.At[c.N] = uint32(off)
	c.Row.Next.Store(0)
	return off, err
}

// IsPlain says that an entry is labelled and nothing else is to be asked of it, unless its
// inode number is special.
func IsPlain(e sys.Dirent, special map[uint64]bool) bool {
	return e.Kind != sys.KindDir && e.Kind != sys.KindUnknown && !special[e.Ino]
}

// Entry is entry i of the row.
func (c *Chunk) Entry(i int) sys.Dirent {
	e, _, _ := sys.Parse(c.records[c.Row.At[i]:]) // it was parsed before
	return e
}

// Move moves Next on, for the worker whose chunk it is. It says no if the rest of the row
// was handed on.
func (c *Chunk) Move(from, to int) bool {
	if c.Row.Next.CompareAndSwap(int32(from), int32(to)) {
		return true
	}
	c.Wait()
	return false
}

// Close is Move where the row ends.
func (c *Chunk) Close(at int) bool { return c.Move(at, closed) }

// Wait returns once the worker that takes the rest has given it on.
func (c *Chunk) Wait() {
	for c.Row.Next.Load() == taking {
		time.Sleep(50 * time.Microsecond)
	}
}

// Take takes what is left of the row, and has give make work of it. The worker whose
// chunk it is waits for that.
func (c *Chunk) Take(give func(records []byte)) {
	next := c.Row.Next.Load()
	if next < 0 || !c.Row.Next.CompareAndSwap(next, taking) {
		return
	}
	c.left.Store(next)
	if rest := c.records[c.Row.At[next]:]; len(rest) > 0 {
		give(rest)
	}
	c.Row.Next.Store(handed)
}

// Reached is the entry whose call is under way in a sweep, if one is.
func (c *Chunk) Reached() (e sys.Dirent, is bool) {
	next := int(c.Row.Next.Load())
	if next < 0 {
		next = int(c.left.Load())
	}
	if next < 1 || next > c.N {
		return e, false
	}
	return c.Entry(next - 1), true
}
