// SPDX-License-Identifier: Apache-2.0

package division

import (
	"hash/fnv"
	"io/fs"
	"sync/atomic"

	"github.com/fastlabel/fastlabel/relabel/internal/mounts"
	"github.com/fastlabel/fastlabel/relabel/internal/sys"
)

// Part is which part of a tree a walk labels.
type Part struct {
	Index, Of int
	Level     int // at which the tree is divided; the top is level 0

	met     atomic.Uint64 // the directories in the top, added up
	beneath atomic.Uint64 // those in other directories that every shard reads
}

// Met tells which directories the walk has met in the top, by its upper half, and by the
// lower which beneath, to the level at which the tree is divided.
func (p *Part) Met() uint64 { return p.met.Load()<<32 | uint64(uint32(p.beneath.Load())) }

// Same says whether met tells of the directories in the top that there are now, by Met.
func Same(met, now uint64) bool { return uint32(met>>32) == uint32(now) }

// Divides says whether what is in a directory at this level is of several parts. On nil
// nothing is.
func (p *Part) Divides(level int32) bool { return p != nil && int(level) < p.Level }

// everyones says whether the directories in one at this level are of every part.
func (p *Part) everyones(level int32) bool { return p.Divides(level + 1) }

// hash is that of name in the directory in, a path that ends with a slash.
func hash(in, name []byte) uint64 {
	h := fnv.New64a()
	h.Write(in)
	h.Write(name)
	return h.Sum64()
}

// spread has every bit of h matter to every other.
func spread(h uint64) uint64 {
	h = (h ^ h>>33) * 0xff51afd7ed558ccd // of MurmurHash3's end
	return h ^ h>>33
}

func (p *Part) owns(at uint64) bool { return spread(at)%uint64(p.Of) == uint64(p.Index) }

// Keep drops from records, which were just read of the directory path at a level that p
// divides, those of other parts, and says how long the rest is.
func (p *Part) Keep(path string, level int32, records []byte) int {
	in, kept := []byte(path+"/"), 0
	for off := 0; off < len(records); {
		r, length, err := sys.Parse(records[off:])
		if err != nil {
			return kept + copy(records[kept:], records[off:]) // the one that labels them tells
		}
		dir := r.Kind == sys.KindDir || r.Kind == sys.KindUnknown
		at := hash(in, r.Name)
		if dir && level > 0 && !sys.IsDot(r.Name) {
			p.beneath.Add(spread(spread(at) + r.Ino))
		}
		if dir && p.everyones(level) || p.owns(at) {
			kept += copy(records[kept:], records[off:off+length])
		}
		off += length
	}
	return kept
}

// Foreign says whether the directory name in the directory path, which every part has,
// is another's to count.
func (p *Part) Foreign(path, name string) bool {
	return !p.owns(hash([]byte(path+"/"), []byte(name)))
}

// Meet adds the directory name, open as fd, to those met in the top.
func (p *Part) Meet(name string, fd int) { p.met.Add(trace([]byte(name), fd)) }

// trace tells the directory name, open as fd, from one that takes its place.
func trace(name []byte, fd int) uint64 {
	at, _ := sys.Place(fd) // what cannot be told makes no difference
	return spread(spread(hash(nil, name)+at.Ino) + uint64(at.Born))
}

// Met tells which directories there are in the top of m, as a Part does that has met
// them all.
func Met(m *mounts.Mount) (met uint64, err error) {
	fd, e := mounts.Reopen(m.Top)
	if e != 0 {
		return 0, &fs.PathError{Op: "openat", Path: m.Path, Err: e}
	}
	defer sys.Close(fd)
	for r, err := range sys.Entries(fd) {
		if err != nil {
			return 0, &fs.PathError{Op: "getdents64", Path: m.Path, Err: err}
		}
		if r.Kind == sys.KindDir || r.Kind == sys.KindUnknown {
			met += metAt(m, fd, r)
		}
	}
	return met, nil
}

// metAt is what the entry r of fd adds. What cannot be looked at adds nothing: the sums
// then differ, or it is gone.
func metAt(m *mounts.Mount, fd int, r sys.Dirent) uint64 {
	at, e := sys.Openat(fd, r.Cname(), sys.OpenPath, 0)
	if e != 0 {
		return 0
	}
	defer sys.Close(at)
	st, e := sys.Fstatx(at)
	if _, left := m.Left[mounts.IDOf(st)]; e != 0 || left || st.Kind != sys.KindDir {
		return 0
	}
	return trace(r.Name, at)
}
