// SPDX-License-Identifier: Apache-2.0

package outlook

import "time"

// factor is how many times as long an entry takes as to read it by name in an
// open directory, which is what a survey measures.
type factor struct{ least, most float64 }

// factors are as wide as what docs/explain.md says was measured, and wider upwards
// where labels are written: what a survey reads does not tell how a disk takes
// writes.
var factors = [...]factor{
	Reads:     {0.25, 2.5},
	ReadsOnce: {0.25, 2.5},
	Writes:    {0.3, 5},
	Labels:    {0.2, 3},
}

// Cost is how long a work takes: at least and at most. ok is false where that is
// not known; work on one label takes no time that counts.
func (v Volume) Cost(w Work) (least, most time.Duration, ok bool) {
	if w == None || w == Root {
		return 0, 0, true
	}
	if v.Most == 0 || v.Each == 0 {
		return 0, 0, false
	}
	f := factors[w]
	span := func(entries int64, times float64) time.Duration {
		return time.Duration(min(float64(entries)*v.Each*times, 1e9) * float64(time.Second))
	}
	return span(v.Least, f.least), span(v.Most, f.most), true
}
