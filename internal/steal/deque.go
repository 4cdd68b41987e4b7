// SPDX-License-Identifier: Apache-2.0

package steal

import (
	"slices"
	"sync"
)

// deque holds one worker's items from oldest to newest. The owner works at the
// newest end (depth first, warm caches), thieves at the oldest (the largest,
// far from the owner). Any goroutine may call any method.
type deque[T any] struct {
	mu    sync.Mutex
	items []T // what was taken is zeroed, to be freed: the memory lives as long as the pool
}

func (d *deque[T]) pushNewest(item T) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.items = append(d.items, item)
}

// pushOldest moves all items. It is rare: once for each buffer of a large directory.
func (d *deque[T]) pushOldest(item T) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.items = slices.Insert(d.items, 0, item)
}

func (d *deque[T]) takeNewest() (item T, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if last := len(d.items) - 1; last >= 0 {
		item, ok = d.items[last], true
		d.items = slices.Delete(d.items, last, last+1)
	}
	return item, ok
}

func (d *deque[T]) takeOldest() (item T, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.items) > 0 {
		item, ok = d.items[0], true
		clear(d.items[:1])
		d.items = d.items[1:]
	}
	return item, ok
}

func (d *deque[T]) empty() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.items) == 0
}
