// SPDX-License-Identifier: Apache-2.0

package rows

import (
	"unsafe"

	"github.com/fastlabel/fastlabel/relabel/internal/sys"
)

// Chunk is a buffer of directory records, and the row that a worker has come to.
type Chunk struct {
	Row   sys.Row
	N     int // names in the row: . and .. are none
	Plain [sys.RowLen]bool

	records []byte // whole
}

// Load makes a row of the records at off, of so many names at most, and returns where the
// next begins. The caller holds the mutex that it holds for Calling.
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
	c.Row.Step.Store(0)
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

// Calling returns the entry whose call is under way, and whether that is a write; ok is
// false before the first call.
func (c *Chunk) Calling() (e sys.Dirent, write, ok bool) {
	i, write := c.Row.Calling()
	if i < 0 || i >= c.N {
		return e, false, false
	}
	return c.Entry(i), write, true
}
