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
	Root    string
	Elapsed time.Duration
	Rate    float64 // entries a second
	Total   int64   // entries, as from has it; 0: unknown
	From    Bound
	Left    time.Duration // 0: unknown
}

// Bound is where the number of entries is from; "": it is unknown.
type Bound string

const (
	ByInodes  Bound = "inodes"   // in use on the filesystem: there may be fewer entries
	ByLastRun Bound = "last_run" // so many entries were there
)

func (b Bound) words(n string) string {
	if b == ByInodes {
		return "at most " + n
	}
	return "about " + n
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
		whole[0] = fmt.Sprintf("%s of %s (%d%%)", words.Thousands(f.Seen), f.From.words(words.Thousands(f.Total)), f.percent())
		// Failures and the time matter more than how many entries there are.
		if len(strings.Join(whole, ", ")) <= room {
			parts = whole
		}
	}
	if f.Left > 0 {
		parts = append(parts, f.From.words(words.Clock(f.Left))+" left")
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
