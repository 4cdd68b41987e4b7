// SPDX-License-Identifier: Apache-2.0

package main

import "slices"

// sweep is every combination of what it lists.
type sweep struct {
	fs, corpora, states []string
	size                string
	n, threads          []int
	cold                bool
	limits              []int    // of a slowdisk; nil: a file on a disk
	beside              []string // see cell.beside; nil: nothing
	with                []string
	rounds              int
}

var (
	disks  = []string{"ext4", "xfs", "btrfs"}
	all    = []string{"ext4", "xfs", "btrfs", "tmpfs"}
	shapes = []string{"flat", "tiny", "realistic", "maildir"}
	states = []string{"wrong", "right", "stray"}
	floors = []string{"floor-dir", "floor-inode"}
	// threaded are floors with numbers of threads of their own.
	threaded = []string{"floor-dir-2", "floor-dir-4", "floor-dir-8", "floor-dir-16", "floor-dir-64", "floor-inode-4", "floor-inode-16"}
)

func with(names ...any) []string {
	var list []string
	for _, n := range names {
		switch n := n.(type) {
		case string:
			list = append(list, n)
		case []string:
			list = append(list, n...)
		}
	}
	return list
}

// plans are what `bench run -plan` knows.
var plans = map[string][]sweep{
	// In .ci/run: a minute.
	"guard": {
		{
			fs: []string{"ext4", "xfs", "tmpfs"}, corpora: []string{"flat", "realistic"}, states: []string{"wrong", "right"},
			size: "20G", n: []int{60_000}, threads: []int{2}, with: with("fastlabel", floors), rounds: 5,
		},
		{
			fs: []string{"ext4"}, corpora: []string{"realistic"}, states: []string{"right"}, size: "2G", n: []int{10_000}, cold: true, limits: []int{3_000},
			threads: []int{0}, with: with("fastlabel", "floor-dir"), rounds: 2,
		},
	},
	// `make bench`: ten minutes.
	"quick": {{
		fs: all, corpora: []string{"flat", "realistic"}, states: states,
		size: "20G", n: []int{40_000}, threads: []int{2}, with: with("fastlabel", floors, "go-selinux", "chcon", "setfiles"), rounds: 10,
	}},
	// `make bench PLAN=small`: ten minutes.
	"small": sweepSmall,
	// `make bench-full`: hours.
	"full": slices.Concat(sweepFloor, sweepOrder, sweepScale, sweepWide, sweepThreads, sweepCold),
	// On a filesystem where each request waits; half an hour.
	"fuse": {{
		fs: []string{"slowfs"}, corpora: []string{"flat", "fifty"}, states: []string{"wrong", "right"},
		n: []int{20_000}, threads: []int{0, 1, 2, 8, 32}, with: with("fastlabel"), rounds: 3,
	}},
	// On a disk that a cloud attaches, as it is after that: days, of which flags choose a
	// part. An hour or two: make bench PLAN=disk BENCHFLAGS='-fs btrfs -n 300000 -limits 3000 -rounds 3'
	"disk": sweepDisk,
	// A whole machine by the policy's rules, eight minutes; and beside peers, which take
	// twenty times as long.
	"system": {{
		fs: []string{"ext4", "xfs"}, corpora: []string{"system"}, states: []string{"wrong", "right"}, size: "20G", n: []int{300_000}, threads: []int{2},
		with: with("fastlabel", floors, "floor-dir-mend", "floor-inode-mend"), rounds: 9,
	}},
	"system-peers": {{
		fs: []string{"ext4", "xfs"}, corpora: []string{"system"}, states: []string{"wrong", "right"}, size: "20G", n: []int{300_000}, threads: []int{2},
		with: with("fastlabel", "setfiles", "restorecon"), rounds: 3,
	}},
	// The parts of the full one.
	"floor":   sweepFloor,
	"order":   sweepOrder,
	"scale":   sweepScale,
	"wide":    sweepWide,
	"threads": sweepThreads,
	"cold":    sweepCold,
}

var (
	sweepFloor = []sweep{
		{
			fs: all, corpora: shapes, states: states, size: "20G", n: []int{300_000}, threads: []int{2},
			with: with("fastlabel", floors, "fastlabel-fchdir", "floor-dir-fchdir", "floor-inode-fchdir"), rounds: 15,
		},
		{
			fs: all, corpora: shapes, states: []string{"wrong"}, size: "20G", n: []int{300_000}, threads: []int{2},
			with: with("fastlabel-exact", "floor-dir-mend", "floor-inode-mend"), rounds: 10,
		},
	}
	sweepOrder = []sweep{{
		fs: []string{"ext4"}, corpora: []string{"hash"}, states: []string{"wrong"}, size: "50G", n: []int{1_000_000}, threads: []int{2},
		with: with("fastlabel", floors, "go-selinux", "chcon"), rounds: 10,
	}}
	sweepScale = []sweep{
		{
			fs: []string{"ext4", "xfs", "tmpfs"}, corpora: []string{"hash"}, states: []string{"wrong", "right"}, size: "100G",
			n: []int{1_000, 10_000, 100_000, 1_000_000, 4_000_000}, threads: []int{2}, with: with("fastlabel", floors, "go-selinux"), rounds: 5,
		},
		{
			fs: []string{"xfs", "tmpfs"}, corpora: []string{"hash"}, states: []string{"wrong", "right"}, size: "100G",
			n: []int{10_000_000}, threads: []int{2}, with: with("fastlabel", floors, "go-selinux"), rounds: 3,
		},
	}
	// As many names as one directory of ext4 has room for: its index has two levels.
	sweepWide = []sweep{{
		fs: []string{"ext4"}, corpora: []string{"hash"}, states: []string{"wrong"}, size: "200G", n: []int{1_000_000, 9_900_000}, threads: []int{2},
		with: with("fastlabel", "fastlabel-small", "floor-inode"), rounds: 9,
	}}
	sweepCold = []sweep{{
		fs: disks, corpora: []string{"flat", "realistic"}, states: []string{"right"}, size: "20G", n: []int{300_000}, cold: true,
		threads: []int{0, 1, 2, 4, 8, 16}, with: with("fastlabel", floors), rounds: 7,
	}}
	sweepThreads = []sweep{{
		fs: all, corpora: []string{"flat", "realistic"}, states: []string{"wrong", "right"}, size: "20G", n: []int{300_000},
		threads: []int{0, 1, 2, 4, 8, 16}, with: with("fastlabel"), rounds: 10,
	}}
)

var (
	calls = []string{"dropin-call", "go-selinux-call"}
	// A pod's volumes, as a runtime labels them by a call before each start; and the command.
	sweepSmall = []sweep{
		{
			fs: []string{"tmpfs", "ext4", "xfs"}, corpora: []string{"files"}, states: []string{"wrong", "right"}, size: "20G",
			n: []int{0, 1, 10, 100, 1_000, 10_000}, threads: []int{0}, with: with(calls, "fastlabel", "chcon"), rounds: 20,
		},
		{
			fs: []string{"ext4", "xfs"}, corpora: []string{"files"}, states: []string{"wrong", "right"}, size: "20G",
			n: []int{10}, threads: []int{0}, beside: []string{"dirty-1024", "writer-1024"}, with: calls, rounds: 10,
		},
		{
			fs: []string{"tmpfs", "ext4"}, corpora: []string{"files"}, states: []string{"wrong", "right"}, size: "20G",
			n: []int{1}, threads: []int{0}, beside: []string{"mounts-20", "mounts-2000"}, with: calls, rounds: 20,
		},
		{ // thirty who ask for one volume
			fs: []string{"tmpfs", "ext4", "xfs"}, corpora: []string{"files"}, states: []string{"wrong", "right"}, size: "20G",
			n: []int{1_000}, threads: []int{30}, with: calls, rounds: 10,
		},
		{ // 110 volumes of 19 files, as when a node has started
			fs: []string{"ext4", "xfs"}, corpora: []string{"volumes"}, states: []string{"wrong", "right"}, size: "20G",
			n: []int{2_200}, threads: []int{110}, beside: []string{"", "writer-1024"}, with: calls, rounds: 10,
		},
	}
)

// Ours and the peers choose their workers; the floor has each number of them.
var sweepDisk = []sweep{{
	fs: disks, corpora: []string{"flat", "realistic"}, states: states, size: "20G", n: []int{300_000, 1_000_000}, cold: true, limits: []int{3_000, 16_000},
	threads: []int{0}, with: with("fastlabel", "go-selinux", threaded), rounds: 9,
}}

// cells lists the sweep's cells; those that can share a tree follow each other.
func (s sweep) cells() []cell {
	var cells []cell
	if len(s.limits) == 0 {
		s.limits = []int{0}
	}
	if len(s.beside) == 0 {
		s.beside = []string{""}
	}
	for _, fs := range s.fs {
		for _, corpus := range s.corpora {
			for _, n := range s.n {
				for _, state := range s.states {
					for _, limit := range s.limits {
						for _, t := range s.threads {
							for _, beside := range s.beside {
								cells = append(cells, cell{fs, s.size, corpus, n, state, s.cold, t, limit, beside})
							}
						}
					}
				}
			}
		}
	}
	return cells
}

// shares reports whether two cells can use one tree.
func (c cell) shares(o cell) bool {
	return c.FS == o.FS && c.Size == o.Size && c.Corpus == o.Corpus && c.N == o.N && (c.Limit > 0) == (o.Limit > 0)
}
