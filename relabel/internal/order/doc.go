// SPDX-License-Identifier: Apache-2.0

// Package order puts the entries of a directory in the order of their inode
// numbers, within a budget of memory. It takes directory records and gives
// directory records; it makes no system call and never calls the walk.
//
//	batch_linux.go  Batch: entries, sorted in place, cut into slices
//	plan_linux.go   Plan: a Batch that says which entries it takes at which
//	                reading of the directory, and if another is needed
//
// A Batch belongs to one goroutine until Sort. Then each of its slices belongs
// to the goroutine that it is handed to, all of them only read the batch, and
// it belongs again to the goroutine whose Slice.Done says true: the counter of
// slices orders that one after all others. To hand a slice over is the caller's
// business.
package order
