// SPDX-License-Identifier: Apache-2.0

package since

import (
	"time"

	"github.com/fastlabel/fastlabel/relabel/internal/sys"
)

// Extent is how much of a directory is to be looked at.
type Extent uint8

// From all of it to the least.
const (
	Everything Extent = iota // whatever is beneath it
	Entries                  // its entries; of what is beneath them, what changed
	Changes                  // of what is beneath it, what changed
)

// Beneath is the extent of the directory st, whose parent has extent x, if what has not
// changed since begin is trusted. dev is the device of the mount's top.
func (x Extent) Beneath(st sys.Stat, begin time.Time, dev uint64) Extent {
	changed := !st.Ctime.Before(begin)
	switch {
	case x == Everything:
		return Everything
	case x == Entries && (changed || st.Dev != dev):
		return Everything // moved here; or a subvolume, which begins with old times
	case changed:
		return Entries
	}
	return Changes
}

// Childless says that there is no directory in the directory st: its links are its name
// and its "."; on btrfs each directory has 1.
func Childless(st sys.Stat) bool { return st.Links == 2 }
