// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/words"
	"github.com/fastlabel/fastlabel/relabel"
)

// Far is how far a run is.
type Far struct {
	relabel.State
	Elapsed time.Duration
	Rate    float64       // entries a second
	Total   int64         // entries at most; 0: unknown
	Left    time.Duration // at most; 0: unknown
}

// percent is of the total. A run that has not ended is not at 100.
func (f Far) percent() int64 {
	return min(99, int64(100*float64(f.Seen)/float64(f.Total)))
}

// Line is for people, in so many columns.
func (f Far) Line(room int) string {
	parts := []string{words.Thousands(f.Seen) + " entries"}
	if f.Failed > 0 {
		parts = append(parts, words.Thousands(f.Failed)+" failed")
	}
	parts = append(parts, words.Clock(f.Elapsed)+" elapsed")
	if f.Total > 0 {
		whole := slices.Clone(parts)
		whole[0] = fmt.Sprintf("%s of at most %s (%d%%)", words.Thousands(f.Seen), words.Thousands(f.Total), f.percent())
		// Failures and the time matter more than how many entries there are.
		if len(strings.Join(whole, ", ")) <= room {
			parts = whole
		}
	}
	if f.Left > 0 {
		parts = append(parts, "at most "+words.Clock(f.Left)+" left")
	}
	parts = append(parts, words.Thousands(int64(math.Round(f.Rate)))+"/s")
	if f.Call != "" {
		return words.Fit(append(parts, "in "+words.Clean(f.Call)), "", room)
	}
	if f.Total == 0 {
		parts = append(parts, words.Thousands(f.Found)+" directories found so far")
	}
	return words.Fit(parts, f.Path, room)
}
