// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"math"
	"syscall"
	"unsafe"

	"github.com/fastlabel/fastlabel/internal/mounts"
	"github.com/fastlabel/fastlabel/internal/sys"
	"github.com/fastlabel/fastlabel/internal/xattrio"
)

// row is names in a buffer that are labelled in one go (sys.Row), all but those that are
// not plain. A worker whose call hangs has what is left of its buffer until the call
// returns: the run cannot complete before that.
type row struct {
	names sys.Row
	n     int // how many: . and .. are none
	plain [sys.RowLen]bool
	buf   []byte
	way   sys.Way // by which they are labelled
}

// load makes a row of up to most entries at off of buf, and returns where the next begins.
func (r *row) load(buf []byte, off, most int, special map[uint64]bool) (next int, err error) {
	r.buf, r.n = buf, 0
	r.names.Base, r.names.Head = unsafe.SliceData(buf), sys.NameAt
	for r.n < most && off < len(buf) {
		var e sys.Dirent
		var length int
		if e, length, err = sys.Parse(buf[off:]); err != nil {
			break
		}
		if !sys.IsDot(e.Name) {
			r.names.At[r.n] = uint32(off)
			r.plain[r.n] = isPlain(e, special)
			r.n++
		}
		off += length
	}
	r.names.At[r.n] = uint32(off)
	r.names.Step.Store(0)
	return off, err
}

// isPlain reports whether an entry is labelled and nothing else is to be asked of it.
func isPlain(e sys.Dirent, special map[uint64]bool) bool {
	return e.Kind != sys.KindDir && e.Kind != sys.KindUnknown && !special[e.Ino]
}

// entry returns entry i of the row.
func (r *row) entry(i int) sys.Dirent {
	e, _, _ := sys.Parse(r.buf[r.names.At[i]:]) // it was parsed before
	return e
}

// call returns the call of a sweep that is under way, and the name.
func (r *row) call() (xattrio.SyscallKind, *byte) {
	i, write := r.names.Calling()
	if i < 0 || i >= r.n {
		return xattrio.Row, nil
	}
	e := r.entry(i)
	if write {
		return xattrio.Writes(r.way), e.Cname()
	}
	return xattrio.Reads(r.way), e.Cname()
}

// firstOf returns where in buf the first n entries end, and where the last of these begins.
// Entries that cannot be parsed that far are an error.
func firstOf(buf []byte, n int) (end, last int, err error) {
	for ; n > 0 && end < len(buf); n-- {
		_, length, err := sys.Parse(buf[end:])
		if err != nil {
			return 0, 0, err
		}
		end, last = end+length, end
	}
	return end, last, nil
}

// sweeps reports whether the name of a plain entry is enough to label it, without the caller.
func (l *labeller) sweeps(want *Want) bool {
	j, m := l.walk.job, l.walk.mount
	if l.io.Way == sys.ByDescriptor && (m.Confined != mounts.Resolve || l.chooses(want)) {
		return false
	}
	return j.Events.Changed == nil && j.HardLinks == LinksLabel && !m.Asks && !m.Stale
}

// sweep labels the names from i to end of the row, or as many as go without
// trouble and the one with the trouble. It returns the next.
func (l *labeller) sweep(d *directory, fd, i, end int) int {
	j := l.walk.job
	o := sys.Sweep{Way: l.io.Way, Dir: fd, Turn: l.turn}
	if j.ByName && j.Writes == DryRun && j.Kernel.Way == sys.ByName && end-i >= noMountsFrom && l.walk.mount.NoMounts() {
		o.Way = sys.ByName
	}
	if l.chooses(d.want) {
		return l.readFirst(d, o, i, end)
	}
	l.io.SetLabel(d.want.Label)
	o.ReadOnly = j.Writes == DryRun
	if j.Writes == Guess {
		if l.wrong < guessAfter {
			end = min(end, i+guessAfter-l.wrong)
		} else {
			o.Blind, o.Check = true, guessCheck
		}
	}
	return l.mend(d, o, i, end)
}

// readFirst is sweep where an entry's own name, or the label that it has, decides what is
// written. The row is read as a whole; then those that follow one another and get the same label
// are written in one go.
func (l *labeller) readFirst(d *directory, o sys.Sweep, i, end int) int {
	row, want := &l.pos.row, d.want
	if want.Rules == nil && want.Label == "" {
		l.count(d, Skipped, end-i)
		return end
	}
	if l.found == nil {
		l.found = new(sys.Found)
	}
	l.pos.now(xattrio.Row)
	l.pos.name.Store(nil)
	read, errno := l.io.Attr.ReadRow(&row.names, i, end, o, l.found)
	if read > i {
		l.eios = 0
	}
	var choices [sys.RowLen]choice
	for k := i; k < read; k++ {
		label, err := want.Label, error(nil)
		if want.Rules != nil {
			e := row.entry(k)
			label, err = want.Rules.Entry(e.Name, e.Kind)
		}
		choices[k] = l.choose(label, l.found.At(k))
		if err != nil {
			choices[k] = choice{outcome: Failed, err: err}
		}
	}
	o.Blind, o.Check = true, math.MaxInt // it was read
	for i < read && !l.queue.Stopped() {
		c := choices[i]
		if c.outcome != Written || l.walk.job.Writes == DryRun {
			e := row.entry(i)
			l.count(d, l.unwritten(d, xattrio.Target{Name: e.Cname()}, c), 1)
			i++
			continue
		}
		k := i + 1
		for k < read && choices[k].outcome == Written && choices[k].to == c.to {
			k++
		}
		l.io.SetLabel(c.to)
		i = l.mend(d, o, i, k)
	}
	if i < read {
		return i
	}
	return l.broken(d, o.Dir, i, false, errno)
}

// mend goes through the names from i to end of the row, counts them, and returns the next.
func (l *labeller) mend(d *directory, o sys.Sweep, i, end int) int {
	l.pos.now(xattrio.Row)
	l.pos.name.Store(nil)
	done := l.io.Attr.Mend(&l.pos.row.names, i, end, o)
	l.turn = done.Turn
	if done.Right > 0 {
		l.wrong = 0
	}
	l.wrong += done.Wrong
	if o.ReadOnly && done.Wrong > 0 {
		done.Written = 1 // it would be
	}
	if done.Right+done.Written > 0 {
		l.eios = 0
	}
	l.count(d, Right, done.Right)
	l.count(d, Written, done.Written)
	return l.broken(d, o.Dir, i+done.Right+done.Written, done.Write, done.Errno)
}

// broken handles what ended a row at its name i, and returns the next. An error of that
// name is handled; a row that was stopped ends there.
func (l *labeller) broken(d *directory, fd, i int, write bool, errno sys.Errno) int {
	if errno == 0 {
		return i
	}
	e := l.pos.row.entry(i)
	t := xattrio.Target{FD: fd, Name: e.Cname(), Kind: e.Kind, Ino: e.Ino}
	l.pos.name.Store(t.Name)
	op := l.io.Reads(t)
	if write {
		op = l.io.Writes(t)
	}
	l.pos.now(op)
	if l.io.Way == sys.ByDescriptor || // which of its calls it was is not known
		errno == syscall.ERANGE { // longer than ReadRow has room for
		l.count(d, l.label(t, d), 1)
	} else {
		l.count(d, l.finish(t, d, result{Failed, op.String(), errno}), 1)
	}
	return i + 1
}
