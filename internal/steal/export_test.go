// SPDX-License-Identifier: Apache-2.0

package steal

// ID is the worker's number, from 0 to Job.Spares.
func (w *Worker[T]) ID() int { return w.id }

// Scans is how often the worker looked at the others' deques. It is the
// worker's own: call it in do or end.
func (w *Worker[T]) Scans() int { return w.start - w.id }

// Take is the owner's take without the work.
func (w *Worker[T]) Take() (T, bool) {
	item, ok := w.deque.takeNewest()
	if ok {
		w.pool.pending.Add(-1)
	}
	return item, ok
}

// Deque opens one worker's deque to tests.
type Deque[T any] struct{ d deque[T] }

func (d *Deque[T]) PushNewest(item T)     { d.d.pushNewest(item) }
func (d *Deque[T]) PushOldest(item T)     { d.d.pushOldest(item) }
func (d *Deque[T]) TakeNewest() (T, bool) { return d.d.takeNewest() }
func (d *Deque[T]) TakeOldest() (T, bool) { return d.d.takeOldest() }
func (d *Deque[T]) Empty() bool           { return d.d.empty() }
