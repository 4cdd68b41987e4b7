// SPDX-License-Identifier: Apache-2.0

// Command bench compares fastlabel with the floor and with its peers, on real
// filesystems, in turns.
//
//	main.go       the command: run, table, compare, plot
//	plan.go       which cells a plan has, and which contestants each
//	cell.go       one cell: its states, and how a run is prepared and checked
//	contestant.go the contestants, and their command lines
//	measure.go    one run of one contestant, and what it took
//	beside.go     calls in a process that runs already, and what is beside them
//	volume.go     a scratch filesystem in a sparse file
//	disk.go       a scratch filesystem on a slowdisk, and what was asked of it
//	slow.go       a scratch filesystem that takes its time, by slowfs
//	corpus.go     trees, made from a seed
//	system.go     a tree like a whole machine's, and a policy's rules for it
//	record.go     a result as a JSON line
//	table.go      medians, ratios to the floor and to the peers
//	compare.go    two programs, cell by cell
//	ab.sh         two commits, by compare
//	floor/        the floor, in C, and the program that starts contestants
//	plot.go       which charts: cost against size, speed against threads
//	draw.go       a chart as SVG
//	rivals/       what is a library, as a command or by calls
//	slowfs/       a FUSE filesystem that takes its time
//	slowdisk/     a disk that takes its time, and counts
//	server/       serves both
//
// A cell is a filesystem, a corpus and a state. In each round every contestant
// of the cell runs once: rounds begin with another contestant each, and every
// other round goes backwards, so that nobody always follows the same one. The
// filesystem's journal is at rest before each run. What counts is the ratio of
// medians within a cell; seconds only give the scale.
//
// The floor is the better of two programs without any safety, one that goes by
// the directory's order and one that goes by inode number. On btrfs, where fastlabel
// waits for a transaction, both end with a syncfs, if anything was written. Neither trusts a
// filesystem to fill a buffer: like fastlabel they ask for a directory's end.
package main
