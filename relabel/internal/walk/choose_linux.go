// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"cmp"
	"math"

	"github.com/fastlabel/fastlabel/relabel/internal/sys"
	"github.com/fastlabel/fastlabel/relabel/internal/xattrio"
)

// Where an entry's own name, or the label that it has, decides what is written, a row is
// read first, as a whole; then it is chosen for each name; then those that follow one
// another and get the same label are written in one go. What is right costs what it
// costs elsewhere, a call, and no memory.

// choosing is what a worker has at hand to choose by.
type choosing struct {
	found   *sys.Found // what a row had
	choices [sys.RowLen]choice
	known   struct { // what Change was asked, and its answer
		has, want string
		choice    choice
	}
}

// choice is what becomes of an entry.
type choice struct {
	outcome Outcome
	to      string // what is written
	err     error  // Failed
}

// chooses says that the name or the label of an entry decides what is written.
func (w *worker) chooses(want *Want) bool {
	return want.Rules != nil || w.Change != nil || want.Label == ""
}

// choose labels names of the row, as sweep does.
func (w *worker) choose(c *chunk, d *Dir, o sys.Order, i, end int) int {
	want := d.want
	if want.Rules == nil && want.Label == "" {
		for ; i < end; i++ {
			w.tally.Count(Skipped)
		}
		return i
	}
	if w.found == nil {
		w.found = new(sys.Found)
	}
	w.now(xattrio.Row)
	w.name.Store(nil)
	read, trouble, errno := w.io.Look(&c.Row, i, end, o, w.found)
	if read > i {
		w.eios = 0
	}
	for k := i; k < read; k++ {
		w.choices[k] = w.chosen(want, c.Entry(k), k)
	}
	for i < read {
		if w.choices[i].outcome == Written {
			done := w.writeAlike(c, o, i, read)
			i += done.Written
			if done.Trouble != sys.None {
				return w.broken(c, d, o.Dir, i, done.Trouble, done.Errno)
			}
			continue
		}
		if w.choices[i].outcome == Failed {
			w.failed(d.Path(string(c.Entry(i).Name)), "relabel", w.choices[i].err)
		}
		w.tally.Count(w.choices[i].outcome)
		i++
	}
	return w.broken(c, d, o.Dir, i, trouble, errno)
}

// writeAlike writes the names from i on for which the same was chosen, before end.
func (w *worker) writeAlike(c *chunk, o sys.Order, i, end int) sys.Done {
	to, k := w.choices[i].to, i+1
	for k < end && w.choices[k].outcome == Written && w.choices[k].to == to {
		k++
	}
	w.ready(to)
	o.Blind, o.Check = true, math.MaxInt // it was read
	done := w.io.Mend(&c.Row, i, k, o)
	w.tally.Seen += int64(done.Written)
	w.tally.Of[Written] += int64(done.Written)
	w.passed.Store(w.tally.Seen)
	return done
}

// chosen says what becomes of the entry e, which is name k of the row that was read.
func (w *worker) chosen(want *Want, e sys.Dirent, k int) choice {
	label := want.Label
	if want.Rules != nil {
		var err error
		if label, err = want.Rules.Entry(e.Name, e.Kind); err != nil {
			return choice{outcome: Failed, err: err}
		}
	}
	value, has := w.found.At(k)
	stored := xattrio.Label{Stored: value, None: !has}
	switch {
	case label == "":
		return choice{outcome: Skipped}
	case stored.Is(label):
		return choice{outcome: Right}
	case w.Change == nil:
		return choice{outcome: Written, to: label}
	}
	if n := len(value); n > 0 && value[n-1] == 0 {
		value = value[:n-1]
	}
	if l := &w.known; l.want != label || l.has != string(value) {
		l.has, l.want = string(value), label
		l.choice.to, l.choice.outcome, l.choice.err = w.Change(l.has, label)
	}
	return w.known.choice
}

// change is Change for t, which has this label; a failure is told.
func (w *worker) change(t xattrio.Target, d *Dir, has, want string) (string, Outcome) {
	to, o, err := w.Change(has, want)
	if err != nil {
		w.failed(d.Path(t.String()), "relabel", err)
	}
	if o == Skipped && to != "" && w.Events.Changed != nil {
		w.skipped(d.Path(t.String()), to)
	}
	if o == Skipped && t.Name == nil {
		d.byRule = true
	}
	return to, o
}

// wanted is the label that t is to have. If that is "", the rest says what became of t.
func (w *worker) wanted(t xattrio.Target, d *Dir) (label string, o Outcome, op string, e sys.Errno) {
	label = d.want.Label
	rules, name, kind := d.want.Rules, "", t.Kind
	if t.Name == nil {
		rules = nil
		if d.parent != nil {
			rules, name, kind = d.parent.want.Rules, d.name[:len(d.name)-1], sys.KindDir
		}
	}
	if rules != nil {
		if kind == sys.KindUnknown {
			st, e := w.io.Stat(t)
			if e != 0 {
				return "", Failed, "statx", e
			}
			kind = st.Kind
		}
		var err error
		if label, err = rules.Entry([]byte(cmp.Or(name, t.String())), kind); err != nil {
			w.failed(d.Path(t.String()), "relabel", err)
			return "", Failed, "", 0
		}
	}
	if label == "" && t.Name == nil {
		d.byRule = true
	}
	return label, Skipped, "", 0
}
