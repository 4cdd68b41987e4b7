// SPDX-License-Identifier: Apache-2.0

package commit

import (
	"hash/maphash"
	"sync"
	"time"

	"github.com/fastlabel/fastlabel/internal/sys"
)

// What is created in the root, renamed into it or removed from it sets its mtime and ctime. mtime
// can be set back, and tar and rsync do; that sets ctime, which cannot be set. So equal times mean
// that nothing changed between two looks, under three conditions:
//
//   - At the first look the filesystem's clock had gone on from those times. Else a change
//     right after the look may get the same time.
//   - The clock was not set back in between.
//   - This run did not write to the root, which sets ctime too. Where it does, mtime counts from
//     before the seal, and ctime from the seal to the commit. What has mtime set back in the same
//     tick as the seal, or between the commit's look at ctime and its write, is found by the list
//     of names, if that is short.

// times are those of the root at one look at it.
type times struct {
	mtime, ctime time.Time
	at           time.Time // when, by the clock of the machine
	clock        time.Time // and by the clock of the filesystem; zero if that is not known
}

// coarsest is the precision of times that nothing better is known of: FAT's.
const coarsest = 2 * time.Second

// lookAtTimes asks for the times of the root, before it is read.
func (c *Root) lookAtTimes() (times, sys.Errno) {
	st, e := sys.Refresh(c.FD, nil)
	t := times{mtime: st.Mtime, ctime: st.Ctime, at: time.Now()}
	if e == 0 && precise(c.Kind, t) && !t.passed(t.ctime) { // else its age is enough, and a call is saved
		if now, e := sys.Clock(); e == 0 {
			t.clock = now
		}
	}
	return t, e
}

// precise reports whether a filesystem of this kind has times as the kernel's clock has them.
// ext4 with inodes of 128 bytes has whole seconds: then there are no nanoseconds.
func precise(kind int64, t times) bool {
	switch kind {
	case sys.Ext4, sys.XFS, sys.Btrfs, sys.Tmpfs:
		return t.mtime.Nanosecond() != 0 || t.ctime.Nanosecond() != 0
	}
	return false
}

// passed reports whether a change after the look gets another time than stamp.
func (t times) passed(stamp time.Time) bool {
	return stamp.Before(t.clock) || stamp.Before(t.at.Add(-coarsest))
}

// setBack reports whether the machine's clock, which went on by wall while elapsed went by, was
// set back. A second is within what coarsest allows for.
func setBack(wall, elapsed time.Duration) bool { return wall < elapsed-time.Second }

// untouched reports whether nothing was created in the root, renamed into it or removed from it
// since Begin. It is asked when the root has the label.
func (c *Root) untouched() bool {
	if c.moved || !c.times.passed(c.times.mtime) || !c.wrong && !c.times.passed(c.times.ctime) {
		return false
	}
	c.Run.At("statx")
	st, e := sys.Refresh(c.FD, nil)
	now := time.Now()
	back := setBack(now.Round(0).Sub(c.times.at.Round(0)), now.Sub(c.times.at)) // Round(0) leaves the monotonic reading out
	if back || e != 0 || !st.Mtime.Equal(c.times.mtime) || !c.wrong && !st.Ctime.Equal(c.ctime) {
		return false
	}
	return !c.wrong || c.names == 0 || c.listNames() == c.names
}

// names is a sum over the list of a directory's entries, their inode numbers included; 0 where
// the list is too long, or cannot be had. One that was removed and made anew with the same
// number is not seen.
type names uint64

// listMost is the longest list that is compared.
const listMost = 32 << 10

var seed = maphash.MakeSeed()

// Listed takes the list of the root's entries, as it was read for the walk.
func (c *Root) Listed(records []byte) { c.names = namesIn(records) }

func namesIn(records []byte) names {
	if len(records) > listMost {
		return 0
	}
	var sum maphash.Hash
	sum.SetSeed(seed)
	for rest := records; len(rest) > 0; {
		d, length, err := sys.Parse(rest)
		if err != nil {
			return 0
		}
		_, _ = sum.Write(rest[:8])               // the inode number
		_, _ = sum.Write(d.Name[:len(d.Name)+1]) // with its NUL; what is behind it in the record is left from before
		rest = rest[length:]
	}
	return names(sum.Sum64())
}

// listNames reads the list, if one call can.
func (c *Root) listNames() names {
	c.Run.At("getdents64")
	defer c.Run.At("")
	if sys.Rewind(c.FD, 0) != 0 {
		return 0
	}
	buf := lists.Get().(*[listMost]byte)
	defer lists.Put(buf)
	n, _ := sys.Getdents(c.FD, buf[:])
	list := namesIn(buf[:max(n, 0)])
	if n, e := sys.Getdents(c.FD, buf[:]); e != 0 || n != 0 { // there is more
		return 0
	}
	return list
}

// lists are buffers for listNames.
var lists = sync.Pool{New: func() any { return new([listMost]byte) }}
