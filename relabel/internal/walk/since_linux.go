// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"github.com/fastlabel/fastlabel/relabel/internal/mounts"
	"github.com/fastlabel/fastlabel/relabel/internal/sys"
	"github.com/fastlabel/fastlabel/relabel/internal/xattrio"
)

// TrustUnchanged rests on the mark of an earlier run (see internal/commit): when that
// began by which everything beneath the root has the label. What was created in a
// directory since, renamed into it or removed from it has moved the directory's
// change time (ctime) past that, and a change time cannot be set back. So a
// directory with an older one holds what it held, and need not be read; only the
// directories in it are looked at in turn, and so are subvolumes of btrfs in it.
//
// A directory that was moved here from outside the tree may hold anything, under
// old change times. But the rename has moved two: that of the directory it is in
// now, and its own (rename sets it on the filesystems that sys.KeepsTimes names,
// though no standard asks for it). Where both are new, all beneath is read.
//
// The root's own entries are always read: the mark is an attribute of the root,
// and to write it moves the change time that would tell.

// extent is how much of a directory is to be looked at.
type extent uint8

const (
	everything extent = iota // whatever is beneath it
	entries                  // its entries; of what is beneath them, what changed
	changes                  // of what is beneath it, what changed
)

// extent is that of a directory in parent.
func (k *Walk) extent(parent *Dir, st sys.Stat) extent {
	changed := !st.Ctime.Before(k.begins.Since)
	switch {
	case parent.Note.extent == everything:
		return everything
	case parent.Note.extent == entries && (changed || st.Dev != k.m.Stat.Dev):
		return everything // moved here; or a subvolume, which begins with old times
	case changed:
		return entries
	}
	return changes
}

// subdirectories makes work of the directories among the records of d, of which
// nothing else is to be looked at. One that has not changed and has no directory
// in it is done with here.
func (w *worker) subdirectories(d *Dir, fd int, records []byte) {
	for len(records) > 0 && !w.stopped() {
		e, length, err := sys.Parse(records)
		if err != nil {
			w.spoil(d, "getdents64", err)
			return
		}
		records = records[length:]
		if e.Kind != sys.KindDir && e.Kind != sys.KindUnknown || sys.IsDot(e.Name) {
			continue
		}
		t := xattrio.Target{FD: fd, Name: e.Cname()}
		w.name.Store(t.Name)
		w.now(xattrio.Statx)
		st, errno := t.Stat()
		if errno == 0 {
			if st.Kind != sys.KindDir {
				continue
			}
			if why, is := w.m.Left[mounts.IDOf(st)]; is {
				if why != "" {
					w.tally.Count(w.leave(d, t, why))
				}
				continue
			}
			if st.Links == childless && w.extent(d, st) == changes {
				w.tally.Unchanged++
				continue
			}
		} else if xattrio.Judge(errno) == xattrio.Gone {
			if e := xattrio.Absent(fd, errno); xattrio.Judge(e) != xattrio.Gone {
				w.tally.Count(w.fail(d, t, "statx", e))
			}
			continue
		}
		w.tally.Found++
		w.cache.Expect(d)
		w.pool.Push(item{kind: enterDir, dir: d, name: string(e.Name[:len(e.Name)+1])})
	}
}

// childless is the link count of a directory without directories in it: its name
// and its "."; on btrfs each directory has 1.
const childless = 2

// measure sets the extent of d, which was just opened, and says whether there is
// nothing in it to be read.
func (w *worker) measure(d *Dir) bool {
	if d.Parent.Note.extent == everything {
		return false
	}
	w.now(xattrio.Statx)
	st, e := sys.Fstatx(d.FD())
	if e != 0 {
		return false // everything in it, then
	}
	if d.Note.extent = w.extent(d.Parent, st); d.Note.extent != changes {
		return false
	}
	w.tally.Unchanged++
	return st.Links == childless
}
