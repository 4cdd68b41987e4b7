// SPDX-License-Identifier: Apache-2.0

package steal

// ID is the worker's number, from 0 to Job.Spares.
func (w *Worker[T]) ID() int { return w.id }

// Scans is how often the worker looked at the others' deques. It is the
// worker's own: call it in do or end.
func (w *Worker[T]) Scans() int { return w.start - w.id }
