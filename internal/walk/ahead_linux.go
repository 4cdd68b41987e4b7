// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"sync"
	"sync/atomic"

	"github.com/fastlabel/fastlabel/internal/mounts"
	"github.com/fastlabel/fastlabel/internal/sys"
	"github.com/fastlabel/fastlabel/internal/xattrio"
)

// A cold ext4 reads a directory block by block, and most directories are one block: of
// all requests to the disk that is nine in ten, and many disks allow some thousand a
// second. The kernel has these blocks in the memory of the block device. So while the
// disk is read and the processors have nothing to do, what lies around a directory on the
// device is asked for with it: directories lie near each other. It is a hint: where the device
// cannot be opened, as in a container, the walk goes on without.

const (
	// around is read with a directory: the largest request of common disks.
	around = 256 << 10
	// mostAhead of one directory is asked for when it is opened: 700,000 names.
	mostAhead = 32 << 20
	// worth directories on average an area must have for more to be asked for, but for a
	// beginning: where those that come first lie apart, the next may lie near them.
	worth  = 3
	credit = worth * 64
)

// disk knows the areas of a disk that were asked for.
type disk struct {
	cold atomic.Bool // the disk is read, and the processors have nothing to do
	off  atomic.Bool // it cannot be done

	mu    sync.Mutex     // locked during no call but the opening of the disk
	fd    int            // open once something was asked for
	asked map[int64]bool // areas, by their number
	dirs  int            // that were looked up
}

func (a *disk) pays() bool { return a.cold.Load() && !a.off.Load() }

// ask asks for what is around the directory fd of m. at is for the call that comes next.
func (a *disk) ask(m *mounts.Mount, fd int, at func(xattrio.SyscallKind)) {
	var extents [16]sys.Extent
	at(xattrio.Ioctl)
	n, e := sys.Extents(fd, &extents)
	if e != 0 {
		a.off.Store(true)
	}
	if e != 0 || !a.mu.TryLock() {
		return
	}
	at(xattrio.Openat)
	areas := a.areas(m, extents[:n])
	a.mu.Unlock()
	at(xattrio.Fadvise64)
	for _, area := range areas {
		sys.WillNeed(a.fd, area*around, around) // a hint
	}
}

// areas are those of a directory in these extents that were not asked for yet.
func (a *disk) areas(m *mounts.Mount, extents []sys.Extent) (areas []int64) {
	if a.asked == nil {
		fd := m.OpenDisk()
		if fd < 0 {
			a.off.Store(true)
			return nil
		}
		a.fd, a.asked = fd, map[int64]bool{}
	}
	if a.dirs++; a.dirs+credit < worth*len(a.asked) {
		return nil
	}
	left := int64(mostAhead)
	for _, x := range extents {
		for at := x.At / around; at*around < x.At+min(x.Len, left); at++ {
			if !a.asked[at] {
				a.asked[at] = true
				areas = append(areas, at)
			}
		}
		left = max(0, left-x.Len)
	}
	return areas
}

func (a *disk) close() {
	if a.asked != nil {
		sys.Close(a.fd)
	}
}
