// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"errors"
	"io/fs"
	"sync/atomic"

	"github.com/fastlabel/fastlabel/relabel/internal/mounts"
	"github.com/fastlabel/fastlabel/relabel/internal/sys"
)

// Several machines label one tree at once, each a shard of it, and say nothing to each
// other until the end. So whose an entry is follows from its path alone:
//
//	level 1   a ▶ every shard     b ▶ every shard     file ▶ by its path
//	level 2   a/c ▶ every shard                       a/file ▶ by its path
//	level 3   a/c/d ▶ by its path, with all beneath   a/c/file ▶ by its path
//
// Directories above the level at which the tree is divided are labelled by every shard
// before it reads them, as what is created in them afterwards has to inherit; each is
// counted by the one whose it is. The names of other shards are dropped as they are read,
// and nothing else here knows of them.
//
// The top is labelled last, and by no shard. What is created in it between the readings
// of two shards does not inherit, and one of them misses what is in it. So each adds up
// which directories it met there: where the sums differ, one run has to look at all. And
// a directory that changes its name between two shards may change its owner. So each adds up
// all those in what every shard reads, as they are read.

// Shard is which part of a tree a walk labels.
type Shard struct {
	Index, Of int
	Level     int // at which the tree is divided; the top is level 0

	met     atomic.Uint64 // the directories in the top, added up
	beneath atomic.Uint64 // those in other directories that every shard reads
}

// Met tells which directories the walk has met in the top, by its upper half, and by the
// lower which beneath, to the level at which the tree is divided.
func (s *Shard) Met() uint64 { return s.met.Load()<<32 | uint64(uint32(s.beneath.Load())) }

// Same says whether met tells of the directories in the top that there are now, by Met.
func Same(met, now uint64) bool { return uint32(met>>32) == uint32(now) }

var errNames = errors.New("the names in it change with its key, so it cannot be divided into shards")

// start and prime are those of FNV-1a.
const start, prime = 14695981039346656037, 1099511628211

func hash[T string | []byte](h uint64, name T) uint64 {
	for i := range len(name) {
		h = (h ^ uint64(name[i])) * prime
	}
	return h
}

// spread has every bit of h matter to every other.
func spread(h uint64) uint64 {
	h = (h ^ h>>33) * 0xff51afd7ed558ccd // of MurmurHash3's end
	return h ^ h>>33
}

// in is the hash of the entries of d, before their names.
func (s *Shard) in(d *Dir) uint64 { return hash(start, d.Beneath()+"/") }

func (s *Shard) owns(in uint64) bool { return spread(in)%uint64(s.Of) == uint64(s.Index) }

// own drops from records, which were just read of d, those of other shards, and says how
// long the rest is.
func (w *worker) own(d *Dir, fd int, records []byte) int {
	s := w.Shard
	if s == nil || int(d.Depth) >= s.Level || len(records) == 0 {
		return len(records)
	}
	if st, e := sys.Fstatx(fd); e == 0 && st.Encrypted {
		w.spoil(d, "relabel", errNames)
		return 0
	}
	in, kept := s.in(d), 0
	for off := 0; off < len(records); {
		r, length, err := sys.Parse(records[off:])
		if err != nil {
			return kept + copy(records[kept:], records[off:]) // the shard that labels them tells
		}
		dir := r.Kind == sys.KindDir || r.Kind == sys.KindUnknown
		at := hash(in, r.Name)
		if dir && d.Depth > 0 && !sys.IsDot(r.Name) {
			s.beneath.Add(spread(spread(at) + r.Ino))
		}
		if everyones := dir && int(d.Depth)+1 < s.Level; everyones || s.owns(at) {
			kept += copy(records[kept:], records[off:off+length])
		}
		off += length
	}
	return kept
}

// foreign says whether the directory name in d, which every shard labels, is another's
// to count.
func (w *worker) foreign(d *Dir, name string) bool {
	s := w.Shard
	return s != nil && int(d.Depth)+1 < s.Level && !s.owns(hash(s.in(d), name))
}

// count counts the entry name of d, if it is not another shard's. What failed here fails
// this shard.
func (w *worker) count(d *Dir, name string, o Outcome) {
	if o == Failed || !w.foreign(d, name) {
		w.tally.Count(o)
	}
}

// meet adds d, which was just opened, to those met in the top.
func (w *worker) meet(d *Dir) {
	if w.Shard != nil && d.Depth == 1 {
		w.Shard.met.Add(trace(d.Name[:len(d.Name)-1], d.FD()))
	}
}

// trace tells the directory name, open as fd, from one that takes its place.
func trace[T string | []byte](name T, fd int) uint64 {
	at, _ := sys.Place(fd) // what cannot be told makes no difference
	return spread(spread(hash(start, name)+at.Ino) + uint64(at.Born))
}

// Met tells which directories there are in the top of m, as a Shard does that has met
// them all.
func Met(m *mounts.Mount) (met uint64, err error) {
	fd, e := mounts.Reopen(m.Top)
	if e != 0 {
		return 0, &fs.PathError{Op: "openat", Path: m.Path, Err: e}
	}
	defer sys.Close(fd)
	buf := make([]byte, bufferSize)
	for {
		n, e := sys.Getdents(fd, buf)
		if e != 0 {
			return 0, &fs.PathError{Op: "getdents64", Path: m.Path, Err: e}
		}
		if n == 0 {
			return met, nil
		}
		for rest := buf[:n]; len(rest) > 0; {
			r, length, err := sys.Parse(rest)
			if err != nil {
				return 0, &fs.PathError{Op: "getdents64", Path: m.Path, Err: err}
			}
			rest = rest[length:]
			if !sys.IsDot(r.Name) && (r.Kind == sys.KindDir || r.Kind == sys.KindUnknown) {
				met += metAt(m, fd, r)
			}
		}
	}
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
