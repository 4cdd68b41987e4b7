// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"github.com/fastlabel/fastlabel/relabel/internal/mounts"
	"github.com/fastlabel/fastlabel/relabel/internal/since"
	"github.com/fastlabel/fastlabel/relabel/internal/sys"
	"github.com/fastlabel/fastlabel/relabel/internal/xattrio"
)

// extent is how much of a directory in parent is looked at.
func (k *Walk) extent(parent *Dir, st sys.Stat) since.Extent {
	return parent.Note.extent.Beneath(st, k.begins.Since, k.m.Stat.Dev)
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
			if since.Childless(st) && w.extent(d, st) == since.Changes {
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
		w.push(item{kind: enterDir, dir: d, name: string(e.Name[:len(e.Name)+1])})
	}
}

// measure sets the extent of d, which was just opened, and says whether there is
// nothing in it to be read.
func (w *worker) measure(d *Dir) bool {
	if d.Parent.Note.extent == since.Everything {
		return false
	}
	w.now(xattrio.Statx)
	st, e := sys.Fstatx(d.FD())
	if e != 0 {
		return false // everything in it, then
	}
	if d.Note.extent = w.extent(d.Parent, st); d.Note.extent != since.Changes {
		return false
	}
	w.tally.Unchanged++
	return since.Childless(st)
}
