// SPDX-License-Identifier: Apache-2.0

package dirs

import "github.com/fastlabel/fastlabel/relabel/internal/sys"

// Held is the directory in which a worker has entered the last one. Consecutive siblings
// share one acquire.
type Held[N any] struct {
	dir  *Dir[N] // nil: none
	owed int     // items that expected it, and were worked on
}

// Is says whether d is held.
func (h *Held[N]) Is(d *Dir[N]) bool { return h.dir == d }

// Acquire acquires d of c for an item that expected it, and holds it in place of the one
// before.
func (h *Held[N]) Acquire(c *Cache[N], d *Dir[N]) (int, string, sys.Errno) {
	if h.dir == d {
		h.owed++
		return d.FD(), "", 0
	}
	h.Release(c)
	fd, op, e := c.Acquire(d)
	if e == 0 {
		h.dir = d
	}
	return fd, op, e
}

// Release releases the directory that is held, before an item in another one.
func (h *Held[N]) Release(c *Cache[N]) {
	if h.dir != nil {
		c.Unpin(h.dir, h.owed)
		h.dir, h.owed = nil, 0
	}
}
