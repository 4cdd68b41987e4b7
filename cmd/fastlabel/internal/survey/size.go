// SPDX-License-Identifier: Apache-2.0

package survey

import "math"

// size estimates how many entries a tree has from random descents (D. E. Knuth,
// "Estimating the efficiency of backtrack programs", 1975): each goes from the
// root to a directory drawn among those in the one before it, until there is
// none, and counts what it meets as often as there were directories to choose
// among. That is right on average, and far off where a tree is lopsided: so it
// is told as wide as the descents differ.
type size struct{ found []float64 }

func (s *size) add(estimate float64) { s.found = append(s.found, estimate) }

// bounds are three standard errors about the mean; ok is false for too few
// descents. Where the descents differ, their mean is more often too small than
// too large, so the upper bound is doubled.
func (s *size) bounds() (least, most float64, ok bool) {
	n := float64(len(s.found))
	if n < 10 {
		return 0, 0, false
	}
	var sum, squares float64
	for _, x := range s.found {
		sum += x
	}
	mean := sum / n
	for _, x := range s.found {
		squares += (x - mean) * (x - mean)
	}
	off := 3 * math.Sqrt(squares/(n-1)/n)
	if off < mean/1000 { // all directories alike
		return mean - off, mean + off, true
	}
	return max(0, mean-off), 2 * (mean + off), true
}
