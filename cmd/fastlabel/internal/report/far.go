// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
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

// narrow is the width, in columns, that a line needs for what matters.
const narrow = 39

// Line is for people, in so many columns. Where they are few, the per cent and the time left
// come first and the rate goes.
func (f Far) Line(room int) string {
	entries, total := words.Thousands(f.Seen)+" entries", ""
	if f.Total > 0 {
		total = fmt.Sprintf("%s of at most %s (%d%%)", words.Thousands(f.Seen), words.Thousands(f.Total), f.percent())
	}
	var failed, left []string
	if f.Failed > 0 {
		failed = []string{words.Thousands(f.Failed) + " failed"}
	}
	if f.Left > 0 {
		left = []string{"about " + words.Clock(f.Left) + " left"}
	}
	elapsed, rate := words.Clock(f.Elapsed)+" elapsed", words.Thousands(int64(math.Round(f.Rate)))+"/s"
	parts := slices.Concat([]string{cmp.Or(total, entries)}, failed, []string{elapsed}, left, []string{rate})
	if total != "" && len(strings.Join(parts, ", ")) > room {
		parts = slices.Concat([]string{fmt.Sprintf("%d%%", f.percent())}, left, failed, []string{entries, elapsed})
	}
	switch {
	case f.Call != "":
		return words.Fit(append(parts, "in "+words.Clean(f.Call)), "", room)
	case f.Total == 0:
		parts = append(parts, words.Thousands(f.Found)+" directories found so far")
	}
	return words.Fit(parts, f.Path, room)
}
