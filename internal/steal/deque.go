// SPDX-License-Identifier: Apache-2.0

package steal

import "sync"

// deque holds one worker's items from oldest to newest. The owner works at the
// newest end (depth first, warm caches), thieves at the oldest (the largest,
// far from the owner). Any goroutine may call any method.
type deque[T any] struct {
	mu   sync.Mutex
	ring []T // the length is zero or a power of two; only grows
	head int // where the oldest is
	n    int // how many there are; slots beyond them are zero
}

func (d *deque[T]) pushNewest(item T) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.room()
	d.ring[(d.head+d.n)&(len(d.ring)-1)] = item
	d.n++
}

func (d *deque[T]) pushOldest(item T) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.room()
	d.head = (d.head - 1) & (len(d.ring) - 1)
	d.ring[d.head] = item
	d.n++
}

func (d *deque[T]) takeNewest() (item T, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.n == 0 {
		return item, false
	}
	d.n--
	return d.clear(d.head + d.n), true
}

func (d *deque[T]) takeOldest() (item T, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.n == 0 {
		return item, false
	}
	item = d.clear(d.head)
	d.head = (d.head + 1) & (len(d.ring) - 1)
	d.n--
	return item, true
}

func (d *deque[T]) empty() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.n == 0
}

// clear empties a slot, so that what its item points to can be freed: a
// ring lives as long as the pool, and a slot may not be used again for hours.
func (d *deque[T]) clear(at int) (item T) {
	slot := &d.ring[at&(len(d.ring)-1)]
	item, *slot = *slot, item
	return item
}

// room makes room for one more. As it doubles, a steady state allocates
// nothing.
func (d *deque[T]) room() {
	if d.n < len(d.ring) {
		return
	}
	ring := make([]T, max(1, 2*len(d.ring)))
	front := copy(ring, d.ring[d.head:])
	copy(ring[front:], d.ring[:d.head])
	d.ring, d.head = ring, 0
}
