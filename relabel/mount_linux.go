// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"maps"
	"strings"
	"syscall"
	"time"

	"github.com/fastlabel/fastlabel/internal/mountinfo"
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
	proc     *proc
	path     string // of its top as the caller would say it, for messages
	real     string // and as mountinfo has it
	id       uint64
	st       sys.Stat
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
	left    map[identity]string
	special map[uint64]bool
	// asks: something is left alone here, and the filesystem's directory
	// records may hold other inode numbers than its files: each is asked.
	asks bool
	// subvolumes: there may be some, each read-only by itself.
	subvolumes bool
	// tells: directory records hold the inode numbers of what is no directory.
	tells bool
}

// locate finds out which mount the O_PATH descriptor at stands in.
func (p *proc) locate(at int, path string) (*mount, string, sys.Errno) {
	st, e := sys.Fstatx(at)
	if e != 0 {
		return nil, "statx", e
	}
	m := &mount{proc: p, path: path, id: st.Mount, st: st}
	if m.id == 0 {
		if m.id, e = p.mountOf(at); e != 0 {
			return nil, "statx", e
		}
	}
	return m, "", 0
}

// enclose opens the top directory of m, at, so that the walk cannot leave it:
// in a private clone where that can be had.
func (r *run) enclose(m *mount, at int) (string, sys.Errno) {
	fd, op, e := -1, "open_tree", syscall.ENOSYS
	m.tree = -1
	m.activity.At("openat", m.path)
	if r.capabilities.clones {
		fd, m.tree, op, e = cloneMount(at)
	}
	if e != 0 && cannotClone(e) {
		m.confined = compareIDs
		if r.capabilities.openat2 {
			m.confined = resolve
		}
		fd, e = openReading(func(flags int) (int, sys.Errno) {
			return sys.Openat(at, sys.Cname("."), flags, 0)
		})
		op = "openat"
	}
	if e != 0 {
		return op, e
	}
	m.top = &dir{mount: m, fd: int32(fd), outcome: skipped, shared: true}
	m.sorter = &sorter{}
	m.activity.At("statx", m.path)
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

func (m *mount) close() {
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
	m.left = make(map[identity]string)
	// Subvolumes of btrfs and files of overlayfs have device numbers of
	// their own, so none is left out for its device.
	maps.Copy(m.left, r.exclude)
	maps.Copy(m.left, r.refusedIn(m))
	for _, on := range mountinfo.Beneath(r.proc.mounts, m.real) {
		// Without a clone the walk meets the mounts themselves. To open an
		// automount as a directory would trigger it.
		automount := m.confined != clone && on.FSType == "autofs"
		if on.Parent != m.id || m.confined != clone && !automount {
			continue
		}
		fd, _, e := m.reach(int(m.top.fd), strings.TrimPrefix(on.Point[len(m.real):], "/"))
		if e != 0 {
			continue // renamed since: nothing of that name is hidden now
		}
		if st, e := sys.Fstatx(fd); e == 0 {
			m.left[identify(st)] = ""
			if r.o.OneFilesystem {
				m.left[identify(st)] = otherFilesystem
			}
		}
		sys.Close(fd)
		m.asks = m.asks || automount // a record has the number of what is under it
	}
	m.special = make(map[uint64]bool, len(m.left))
	for id := range m.left {
		m.special[id.ino] = true
	}
}

// refusedIn finds the refused places that lie in m as plain directories, which
// they do where m is another mount of their filesystem. All others cost the walk
// nothing.
func (r *run) refusedIn(m *mount) map[identity]string {
	in := make(map[identity]string)
	mine := r.proc.mount(m.id)
	for id, place := range r.deny {
		theirs := r.proc.mount(place.mount)
		if place.mount == 0 {
			theirs = r.proc.over(place.path)
		}
		switch {
		case place.link || theirs != nil && theirs.ID == m.id:
			continue // what it leads to is asked about; no root holds such a place
		case mine == nil || theirs == nil: // not to be seen from here, as in a chroot
			if id.dev != m.st.Dev {
				continue
			}
		case mine.Device != theirs.Device || !strings.HasPrefix(theirs.Inside(place.path), strings.TrimSuffix(mine.Inside(m.real), "/")+"/"):
			continue
		}
		in[id] = place.String()
	}
	return in
}

// reach names the entry at path beneath dir by an O_PATH descriptor, one name
// at a time, following no link. It crosses mounts, where there are any, and
// tells which identities it passed, the last included.
func (m *mount) reach(dir int, path string) (int, []identity, sys.Errno) {
	at := dir
	var passed []identity
	for name := range strings.SplitSeq(path, "/") {
		next, e := sys.Openat(at, sys.Cname(name), sys.OpenPath, 0)
		if at != dir {
			sys.Close(at)
		}
		if e != 0 {
			return -1, nil, e
		}
		at = next
		st, e := sys.Fstatx(at)
		if e != 0 {
			sys.Close(at)
			return -1, nil, e
		}
		passed = append(passed, identify(st))
	}
	return at, passed, 0
}
