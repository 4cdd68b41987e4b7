// SPDX-License-Identifier: Apache-2.0

package walk

// Outcome is what became of one entry. Each entry that is met has exactly one.
type Outcome uint8

const (
	Written Outcome = iota // in a dry run: would be
	Right
	Vanished
	Skipped
	Failed
	outcomes             // how many are counted
	Elsewhere = outcomes // not counted here: a mount that is walked on its own
)

// Tally counts. That of a worker is written by it alone.
type Tally struct {
	Seen int64
	Of   [outcomes]int64

	Found, Entered int64 // directories
}

// Count counts an entry.
func (t *Tally) Count(o Outcome) {
	if o != Elsewhere {
		t.Seen++
		t.Of[o]++
	}
}

// Add counts what o has counted.
func (t *Tally) Add(o Tally) {
	t.Seen += o.Seen
	t.Found += o.Found
	t.Entered += o.Entered
	for i := range t.Of {
		t.Of[i] += o.Of[i]
	}
}
