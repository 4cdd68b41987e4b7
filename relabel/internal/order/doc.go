// SPDX-License-Identifier: Apache-2.0

// Package order puts the entries of a directory in the order of their inode
// numbers, within a budget of memory. It takes directory records and gives
// directory records; but for how much memory there is, it asks nobody.
//
// On ext4 a large directory lists its entries by a hash of their names, and
// labels lie in the inodes. Writing in that order dirties the inode table at
// random: once the table is larger than a good part of the journal, every
// transaction carries each of its blocks again, and the journal stalls the
// writers. In the order of inode numbers each block is written once: four
// times as fast for a million files on a volume of 50 GiB.
//
// Right labels are read faster too if the inodes lie close together: a block of the
// inode table holds 16, and the kernel looks it up for each. So where labels are
// right, the records of a directory that does not fit into one buffer are put in
// order within a window, some hundred thousand of them: a fifth faster than as they
// come.
//
//	sorting_linux.go  Sorting: from when on, and within how much memory
//	memory_linux.go   Memory: who may gather now, and which directories wait
//	plan_linux.go     Plan: a Batch that says which entries it takes at which
//	                  reading of the directory, and if another is needed
//	stretch_linux.go  Stretch: a part of a directory, which workers read side by side
//	batch_linux.go    Batch: entries, sorted in place, cut into slices
//
// A Batch belongs to one goroutine until Sort, or to the readers of a directory, which
// share it under a mutex until the last leaves. Then each of its slices belongs
// to the goroutine that it is handed to, all of them only read the batch, and
// it belongs again to the goroutine whose Slice.Done says true: the counter of
// slices orders that one after all others. To hand a slice over is the caller's
// business.
package order
