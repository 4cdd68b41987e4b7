// SPDX-License-Identifier: Apache-2.0

// Package steal is a pool of workers that take work from each other. It knows
// no files: an item is whatever the caller says, and what it holds is the
// caller's to release.
//
// What belongs here: deques, stealing, parking, ending. What does not: system
// calls, paths, labels, tallies, limits on how much may be pending. The files,
// in the order of a run:
//
//	pool.go    Job, Run, the pool, what stops it; the orderings that all rely on
//	worker.go  one worker's life: begin, take, steal, park, end
//	deque.go   one worker's items, in a ring under a mutex
//	lot.go     where idle workers sleep and how they are woken
//	pause.go   nothing, between two ordered steps; pause_race.go pauses at random
//
// test/mutants breaks each ordering in turn, and a test notices.
package steal
