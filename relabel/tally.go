// SPDX-License-Identifier: Apache-2.0

package relabel

// outcome is what became of one entry. Each entry that is met has exactly one.
type outcome uint8

const (
	written outcome = iota
	right
	vanished
	skipped
	failure
	outcomes             // how many are counted
	elsewhere = outcomes // not counted here: a mount that is walked on its own
)

// tally counts for one worker, which alone writes it.
type tally struct {
	seen int64
	of   [outcomes]int64
	// unchanged directories have entries that were not looked at.
	unchanged int64

	found, entered int64 // directories
}

func (t *tally) count(o outcome) {
	if o != elsewhere {
		t.seen++
		t.of[o]++
	}
}

func (t *tally) add(o tally) {
	t.seen += o.seen
	t.unchanged += o.unchanged
	t.found += o.found
	t.entered += o.entered
	for i := range t.of {
		t.of[i] += o.of[i]
	}
}

func (t *tally) fill(r *Report) {
	r.Seen, r.Unchanged = t.seen, t.unchanged
	r.Written, r.Right = t.of[written], t.of[right]
	r.Vanished, r.Skipped, r.Failed = t.of[vanished], t.of[skipped], t.of[failure]
}
