// SPDX-License-Identifier: Apache-2.0

package torture

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/fastlabel/fastlabel/test/treetest"
)

// page is what a disk writes whole or not at all: the physical sector of
// today's disks. A longer write is lost page by page.
const page = 4096

// piece is one page of a write, or part of it; or a flush.
type piece struct {
	flush bool
	page  int64
	at    int // in the page
	data  []byte
}

// readDiskLog gives what was written, in order, and how many pieces of it had
// been by each of the marks, which ascend. A mark may lie in the midst of an
// entry: that one came after it. What follows the last mark is left out.
func readDiskLog(t *testing.T, file string, marks ...int64) (log []piece, at []int) {
	t.Helper()
	text, err := os.ReadFile(file)
	treetest.Must(t, err)
	at = make([]int, len(marks))
	for rest := text; int64(len(rest)) >= logHeadSize; {
		var h logHead
		_, err := binary.Decode(rest, binary.LittleEndian, &h)
		treetest.Must(t, err)
		end := logHeadSize + int64(h.Length)
		if end > int64(len(rest)) {
			break
		}
		log = h.pieces(log, rest[logHeadSize:end])
		rest = rest[end:]
		for i, mark := range marks {
			if int64(len(text)-len(rest)) <= mark {
				at[i] = len(log)
			}
		}
	}
	return log[:at[len(at)-1]], at
}

// pieces appends the pieces of an entry.
func (h logHead) pieces(to []piece, data []byte) []piece {
	if h.Flush != 0 {
		return append(to, piece{flush: true})
	}
	for off := h.Offset; len(data) > 0; {
		at := int(off % page)
		n := min(page-at, len(data))
		to = append(to, piece{page: off / page, at: at, data: data[:n]})
		off, data = off+int64(n), data[n:]
	}
	return to
}

// pages are the pages of a disk that are not zero. A page is never changed
// once it is here: clones share it.
type pages map[int64][]byte

var zeros [page]byte

func readPages(t *testing.T, file string) pages {
	t.Helper()
	f, err := os.Open(file)
	treetest.Must(t, err)
	defer f.Close()
	p := pages{}
	for off := int64(0); ; {
		if off, err = unix.Seek(int(f.Fd()), off, unix.SEEK_DATA); err == unix.ENXIO {
			return p // a hole to the end
		}
		off -= off % page
		data := make([]byte, page)
		_, e := f.ReadAt(data, off)
		treetest.Must(t, err, e)
		if !bytes.Equal(data, zeros[:]) {
			p[off/page] = data
		}
		off += page
	}
}

func (p pages) put(q piece) {
	data := q.data
	if len(data) < page {
		data = make([]byte, page)
		copy(data, p[q.page])
		copy(data[q.at:], q.data)
	}
	p[q.page] = data
}

// write makes a file of the pages.
func (p pages) write(t *testing.T, file string, size int64) {
	t.Helper()
	f, err := os.Create(file)
	treetest.Must(t, err)
	defer f.Close()
	treetest.Must(t, f.Truncate(size))
	for n, data := range p {
		_, err := f.WriteAt(data, n*page)
		treetest.Must(t, err)
	}
}

// replay goes through a log, and can cut the power at each place of it.
type replay struct {
	log     []piece
	at      int   // pieces so far
	flushed int   // those of them that no loss can take
	durable pages // what they left on the platter
}

func newReplay(base pages, log []piece) *replay {
	return &replay{log: log, durable: maps.Clone(base)}
}

// to goes on until n pieces were acknowledged.
func (r *replay) to(n int) {
	for ; r.at < n; r.at++ {
		if r.log[r.at].flush {
			for _, q := range r.log[r.flushed:r.at] {
				r.durable.put(q)
			}
			r.flushed = r.at + 1
		}
	}
}

// losses are ways to lose what was not flushed: the share that is kept, or
// exactly one piece that is, or is not.
var losses = []struct {
	name string
	keep float64
	one  bool
}{
	{name: "nothing lost", keep: 1},
	{name: "all lost", keep: 0},
	{name: "one lost", keep: 1, one: true},
	{name: "one kept", keep: 0, one: true},
	{name: "a tenth lost", keep: 0.9},
	{name: "half lost", keep: 0.5},
	{name: "nine tenths lost", keep: 0.1},
}

// cut gives what is on the platter if the power fails here, and says what was
// lost. Pieces of the same page keep their order, as a disk's cache does.
func (r *replay) cut(rng *rand.Rand) (pages, string) {
	how := losses[rng.IntN(len(losses))]
	pending := r.log[r.flushed:r.at]
	odd := -1
	if how.one && len(pending) > 0 {
		odd = rng.IntN(len(pending))
	}
	left, lost := maps.Clone(r.durable), 0
	for i, q := range pending {
		if keep := rng.Float64() < how.keep; keep != (i == odd) {
			left.put(q)
		} else {
			lost++
		}
	}
	return left, fmt.Sprintf("%s: %d of %d", how.name, lost, len(pending))
}
