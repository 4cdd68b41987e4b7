// SPDX-License-Identifier: Apache-2.0

package order

import (
	"os"

	"github.com/fastlabel/fastlabel/relabel/internal/budget"
)

// Sorting says from when on, and within how much memory, directories are gathered.
type Sorting struct {
	From   int64        // directories of that many bytes; 0: none
	Budget int          // names and index, in bytes
	Memory func() int64 // that may be had for one that is larger; nil: no more
}

// Ample is for any machine: a directory of 1 MiB holds some 25,000 entries, below
// which ext4 keeps the inodes of a directory together anyway, and 37 MiB hold a
// million names of 29 bytes, with which the program stays within 48 MiB.
var Ample = Sorting{From: 1 << 20, Budget: 37 << 20, Memory: func() int64 { return budget.Memory(os.DirFS("/")) }}

// mostBudget holds six million names of 32 bytes. So ten million are read twice, not
// ten times, within 256 MiB.
const mostBudget = 236 << 20

// Room is what a directory gets.
type Room struct {
	Budget    int // for its names and index, in bytes
	Stretches int // of a reading, at most
}

// Room is that of a directory of size bytes. It takes less than that: a name has 8 bytes
// more in ext4's blocks, which are seldom full, and 9 here.
func (s Sorting) Room(size int64) Room {
	r := Room{s.Budget, int(min(size/max(1, s.From), mostStretches))}
	if s.Memory != nil && size > int64(s.Budget) {
		r.Budget = max(s.Budget, int(min(size, mostBudget, s.Memory())))
	}
	return r
}
