// SPDX-License-Identifier: Apache-2.0

package main

import "slices"

// sweep is every combination of what it lists.
type sweep struct {
	fs, corpora []string
	size        string // of a filesystem, as truncate -s takes it
	n           []int  // about how many entries
	states      []string
	threads     []int // for calls: how many at once
	cold        bool  // caches are dropped before each run
	with        []string
	rounds      int
	// limit fails the plan if fastlabel's best in a cell is above this many of the floor's,
	// in three tries: of time, or of requests to the disk where caches are cold. 0: never.
	limit float64
}

var (
	disks  = []string{"ext4", "xfs", "btrfs"}
	all    = []string{"ext4", "xfs", "btrfs", "tmpfs"}
	two    = []string{"flat", "realistic"}
	both   = []string{"wrong", "right"}
	states = []string{"wrong", "right", "stray"}
	floors = []string{"floor-dir", "floor-inode"}
	calls  = []string{"dropin-call", "go-selinux-call"}
)

func with(names []string, more ...string) []string { return slices.Concat(names, more) }

// plans are what `bench run -plan` knows.
var plans = map[string][]sweep{
	// In .ci/run: a minute.
	"guard": {
		{
			fs: []string{"ext4", "xfs", "tmpfs"}, corpora: two, size: "20G", n: []int{60_000}, states: both, threads: []int{2},
			with: with(floors, "fastlabel"), rounds: 5, limit: 1.6,
		},
		{
			fs: []string{"ext4"}, corpora: []string{"realistic"}, size: "20G", n: []int{60_000}, states: []string{"right"}, threads: []int{0}, cold: true,
			with: []string{"floor-dir", "fastlabel"}, rounds: 2, limit: 0.3,
		},
	},
	// `make bench`: ten minutes.
	"quick": {{
		fs: all, corpora: two, size: "20G", n: []int{40_000}, states: states, threads: []int{2},
		with: with(floors, "fastlabel", "go-selinux", "chcon", "setfiles"), rounds: 10,
	}},
	// An hour or two: all shapes, and as if the kernel were older than 6.13.
	"floor": {{
		fs: all, corpora: []string{"flat", "tiny", "realistic", "maildir"}, size: "20G", n: []int{300_000}, states: states, threads: []int{2},
		with: with(floors, "fastlabel", "fastlabel-fchdir", "floor-dir-fchdir", "floor-inode-fchdir"), rounds: 15,
	}},
	// A large directory.
	"order": {{
		fs: []string{"ext4"}, corpora: []string{"hash"}, size: "50G", n: []int{1_000_000}, states: []string{"wrong"}, threads: []int{2},
		with: with(floors, "fastlabel", "go-selinux", "chcon"), rounds: 10,
	}},
	// Time and memory against the number of entries: hours.
	"scale": {{
		fs: []string{"ext4", "xfs", "tmpfs"}, corpora: []string{"hash"}, size: "200G", n: []int{1_000, 10_000, 100_000, 1_000_000, 9_900_000}, states: both, threads: []int{2},
		with: with(floors, "fastlabel", "go-selinux"), rounds: 5,
	}},
	// As many names as one directory of ext4 has room for: its index has two levels.
	"wide": {{
		fs: []string{"ext4"}, corpora: []string{"hash"}, size: "200G", n: []int{9_900_000}, states: []string{"wrong"}, threads: []int{2},
		with: []string{"floor-inode", "fastlabel", "fastlabel-small"}, rounds: 9,
	}},
	// After a mount, by the number of threads.
	"cold": {{
		fs: disks, corpora: two, size: "20G", n: []int{300_000}, states: []string{"right"}, threads: []int{0, 1, 2, 4, 8, 16}, cold: true,
		with: with(floors, "fastlabel"), rounds: 7,
	}},
	// A pod's volumes, as a runtime labels them by a call before each start; and the command.
	"small": {
		{
			fs: []string{"tmpfs", "ext4", "xfs"}, corpora: []string{"files"}, size: "20G", n: []int{0, 1, 10, 100, 1_000, 10_000}, states: both, threads: []int{0},
			with: with(calls, "fastlabel", "chcon"), rounds: 20,
		},
		{ // thirty who ask for one volume
			fs: []string{"tmpfs", "ext4", "xfs"}, corpora: []string{"files"}, size: "20G", n: []int{1_000}, states: both, threads: []int{30},
			with: calls, rounds: 10,
		},
		{ // 110 volumes of 19 files, as when a node has started
			fs: []string{"ext4", "xfs"}, corpora: []string{"volumes"}, size: "20G", n: []int{2_200}, states: both, threads: []int{110},
			with: calls, rounds: 10,
		},
	},
}
