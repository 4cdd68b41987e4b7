// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"errors"

	"github.com/fastlabel/fastlabel/relabel/internal/sys"
)

// Where the walk is of a part of the tree (package division), the names of other parts are
// dropped as they are read, and nothing but this file knows of them.

var errNames = errors.New("the names in it change with its key, so it cannot be divided into shards")

// own drops from records, which were just read of d, those of other shards, and says how
// long the rest is.
func (w *worker) own(d *Dir, fd int, records []byte) int {
	if !w.Part.Divides(d.Depth) || len(records) == 0 {
		return len(records)
	}
	if st, e := sys.Fstatx(fd); e == 0 && st.Encrypted {
		w.spoil(d, "relabel", errNames)
		return 0
	}
	return w.Part.Keep(d.Beneath(), d.Depth, records)
}

// foreign says whether the directory name in d, which every shard labels, is another's
// to count.
func (w *worker) foreign(d *Dir, name string) bool {
	return w.Part.Divides(d.Depth+1) && w.Part.Foreign(d.Beneath(), name)
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
	if w.Part != nil && d.Depth == 1 {
		w.Part.Meet(d.Name[:len(d.Name)-1], d.FD())
	}
}
