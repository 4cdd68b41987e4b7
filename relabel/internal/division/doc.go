// SPDX-License-Identifier: Apache-2.0

// Package division says whose an entry is, where several machines label one tree.
//
// Each machine labels a shard of it, and they say nothing to each other until the end.
// So whose an entry is follows from its path alone:
//
//	level 1   a ▶ every shard     b ▶ every shard     file ▶ by its path
//	level 2   a/c ▶ every shard                       a/file ▶ by its path
//	level 3   a/c/d ▶ by its path, with all beneath   a/c/file ▶ by its path
//
// Directories above the level at which the tree is divided are labelled by every shard
// before it reads them, as what is created in them afterwards has to inherit; each is
// counted by the one whose it is. The names of other shards are dropped as they are read.
//
// The top is labelled last, and by no shard. What is created in it between the readings
// of two shards does not inherit, and one of them misses what is in it. So each adds up
// which directories it met there: where the sums differ, one run has to look at all. And
// a directory that changes its name between two shards may change its owner. So each adds up
// all those in what every shard reads, as they are read.
package division
