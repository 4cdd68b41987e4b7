// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"maps"
	"strings"
	"syscall"
	"time"

	"github.com/fastlabel/fastlabel/internal/mountinfo"
	"github.com/fastlabel/fastlabel/relabel/internal/mounts"
	"github.com/fastlabel/fastlabel/relabel/internal/sys"
	"github.com/fastlabel/fastlabel/relabel/internal/watch"
	"github.com/fastlabel/fastlabel/relabel/internal/xattrio"
)

const (
	excluded        = "excluded"
	otherFilesystem = "another filesystem"

	readOnlySubvolume = "a read-only subvolume"
)

// mount is one mount of the tree, walked on its own and never left.
type mount struct {
	*mounts.Mount
	proc     *mounts.Proc
	confined confinement
	tree     int // the clone itself; -1: there is none
	top      *dir
	activity *watch.Activity
	sorter   *sorter
	served   bool      // calls wait for a server
	sorts    bool      // large directories are written in the order of inodes
	dated    bool      // change times tell what has changed
	since    time.Time // of the mark relied on: see since_linux.go
	// left says what in it is left alone, and why; "" is for what lies under
	// another mount of the tree. special has the same by inode number alone,
	// which a directory record tells without a further call.
	left    map[mounts.ID]string
	special map[uint64]bool
	// asks: something is left alone here, and the filesystem's directory
	// records may hold other inode numbers than its files: each is asked.
	asks bool
	// subvolumes: there may be some, each read-only by itself.
	subvolumes bool
	// tells: directory records hold the inode numbers of what is no directory.
	tells bool
}

// enclose opens the top directory of m, at, so that the walk cannot leave it:
// in a private clone where that can be had.
func (r *run) enclose(m *mount) (string, sys.Errno) {
	fd, op, e := -1, "open_tree", syscall.ENOSYS
	m.tree = -1
	m.activity.At("openat", m.Path)
	if r.capabilities.clones {
		fd, m.tree, op, e = cloneMount(m.At)
	}
	if e != 0 && cannotClone(e) {
		m.confined = compareIDs
		if r.capabilities.openat2 {
			m.confined = resolve
		}
		fd, e = openReading(func(flags int) (int, sys.Errno) {
			return sys.Openat(m.At, sys.Cname("."), flags, 0)
		})
		op = "openat"
	}
	if e != 0 {
		return op, e
	}
	m.top = &dir{mount: m, fd: int32(fd), outcome: skipped, shared: true}
	m.sorter = &sorter{}
	m.activity.At("statx", m.Path)
	r.setAside(m)
	kind, e := sys.FSType(fd)
	m.sorts = e == 0 && kind == sys.Ext4
	m.dated = e == 0 && sys.KeepsTimes(kind)
	m.subvolumes = e == 0 && kind == sys.Btrfs
	m.served = e == 0 && sys.Served(kind) || r.capabilities.served
	m.tells = e == 0 && (sys.RecordsTell(kind) || kind == sys.Btrfs)
	m.asks = m.asks || len(m.left) > 0 && (e != 0 || !sys.RecordsTell(kind))
	r.expectCopies(m)
	m.activity.At("", "")
	return "", 0
}

func (m *mount) leave() {
	if m.top != nil {
		sys.Close(int(m.top.fd))
		if m.tree >= 0 {
			sys.Close(m.tree)
		}
	}
}

// way is how the entries of m are labelled: only a clone keeps a mount from
// being slipped over a name, so elsewhere each entry is pinned first. So it is
// where links are counted: what was counted must be what is labelled.
func (r *run) way(m *mount) xattrio.Way {
	if m.confined == clone && r.o.HardLinks == LinksLabel {
		return r.capabilities.way
	}
	return xattrio.ByDescriptor
}

// setAside fills in what the walk of m is to leave alone.
func (r *run) setAside(m *mount) {
	m.left = make(map[mounts.ID]string)
	// Subvolumes of btrfs and files of overlayfs have device numbers of
	// their own, so none is left out for its device.
	maps.Copy(m.left, r.exclude)
	maps.Copy(m.left, r.refusedIn(m))
	for _, on := range mountinfo.Beneath(r.proc.Mounts, m.Real) {
		// Without a clone the walk meets the mounts themselves. To open an
		// automount as a directory would trigger it.
		automount := m.confined != clone && on.FSType == "autofs"
		if on.Parent != m.Stat.Mount || m.confined != clone && !automount {
			continue
		}
		fd, _, e := mounts.Reach(int(m.top.fd), strings.TrimPrefix(on.Point[len(m.Real):], "/"))
		if e != 0 {
			continue // renamed since: nothing of that name is hidden now
		}
		if st, e := sys.Fstatx(fd); e == 0 {
			m.left[mounts.IDOf(st)] = ""
			if r.o.OneFilesystem {
				m.left[mounts.IDOf(st)] = otherFilesystem
			}
		}
		sys.Close(fd)
		m.asks = m.asks || automount // a record has the number of what is under it
	}
	m.special = make(map[uint64]bool, len(m.left))
	for id := range m.left {
		m.special[id.Ino] = true
	}
}

// refusedIn finds the refused places that lie in m as plain directories, which
// they do where m is another mount of their filesystem. All others cost the walk
// nothing.
func (r *run) refusedIn(m *mount) map[mounts.ID]string {
	in := make(map[mounts.ID]string)
	mine := r.proc.ByID(m.Stat.Mount)
	for id, place := range r.deny {
		theirs := r.proc.ByID(place.mount)
		if place.mount == 0 {
			theirs = r.proc.Over(place.path)
		}
		switch {
		case place.link || theirs != nil && theirs.ID == m.Stat.Mount:
			continue // what it leads to is asked about; no root holds such a place
		case mine == nil || theirs == nil: // not to be seen from here, as in a chroot
			if id.Dev != m.Stat.Dev {
				continue
			}
		case mine.Device != theirs.Device || !strings.HasPrefix(theirs.Inside(place.path), strings.TrimSuffix(mine.Inside(m.Real), "/")+"/"):
			continue
		}
		in[id] = place.String()
	}
	return in
}
