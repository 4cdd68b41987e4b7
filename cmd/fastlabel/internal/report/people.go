// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/exit"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/stream"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/words"
	"github.com/fastlabel/fastlabel/relabel"
)

// People prints events as lines: what is data (the changes with -v, the answers of probe
// and verify) to stdout, all else to stderr.
type People struct {
	Out   *stream.Sink
	Err   io.Writer
	Quiet bool // failures alone
	Dry   bool
}

func (p *People) Put(e Event) {
	if p.Quiet && e.Kind != Failure {
		return
	}
	text := e.Line(p.Dry)
	if e.More {
		text += "; -v lists all"
	}
	if e.Root != "" && (e.More || e.Kind == Note || e.Kind == Status) {
		root := words.Plain(e.Root) + ": "
		if n := p.columns(); e.Far != nil && n > 0 {
			text = e.Far.Line(max(narrow, n-len(prefix+root)))
		}
		text = root + text
	}
	switch {
	case e.Result != nil:
		p.summary(e, text)
	case e.Kind == Change, e.Probe != nil:
		p.Out.Line([]byte(text), e.Probe != nil)
	default:
		p.say(text)
	}
}

const prefix = "fastlabel: "

// columns returns the width of the terminal, 0 if there is none.
func (p *People) columns() (n int) {
	if s, ok := p.Err.(*stream.Screen); ok {
		n, _ = s.Columns()
	}
	return n
}

func (p *People) say(text string) { fmt.Fprintf(p.Err, "%s%s\n", prefix, text) }

func (p *People) summary(e Event, text string) {
	root := words.Plain(e.Root) + ": "
	if e.Result.Interrupted != "" {
		which, more := "an earlier", ""
		if e.Result.DryRun { // takes no lock
			which, more = "a", ", or is at work"
		}
		p.say(root + which + " relabel to " + words.Plain(e.Result.Interrupted) + " did not complete" + more)
	}
	for _, l := range e.Result.Labels {
		p.Out.Line([]byte(root+l.line()), false)
	}
	switch {
	case text == "":
	case e.Result.Command == "verify":
		p.Out.Line([]byte(root+text), true)
	default:
		_ = p.Out.Flush() // the list comes first; an error is reported at the end
		p.say(root + text)
	}
}

// Line returns the event in words, without its PATH; "" where a failure has said all.
func (e Event) Line(dry bool) string {
	switch e.Kind {
	case Failure:
		if e.More {
			return e.Text
		}
		return FaultOf(e.Root, e.Err).String()
	case Change:
		did, from := "relabelled ", ""
		if dry { // every label was read
			did, from = "would relabel ", " from no label"
		}
		if e.From != "" {
			from = " from " + words.Plain(e.From)
		}
		return did + words.Quote(e.Path) + from + " to " + e.To
	case Skip:
		return words.Quote(e.Path) + ": skipped: " + words.Clean(e.Text)
	case Note:
		return words.Clean(e.Text)
	case Summary:
		return e.Result.line()
	}
	switch {
	case e.Probe != nil:
		return e.Probe.line()
	case e.Far != nil:
		return e.Far.Line(words.Widest)
	case e.State == "waiting":
		return "waiting for another relabel of this volume"
	case e.Call == "":
		return "waiting for the filesystem"
	}
	return "waiting for " + words.Clean(e.Call) + " " + words.Quote(e.Path)
}

// line is the answer of probe.
func (r *Probe) line() string {
	switch {
	case r.Labelled && r.Depth == "top":
		return "labelled: the top directory and its entries have this label"
	case r.Labelled:
		return "labelled: the top directory has this label"
	case r.Interrupted:
		return "not labelled: a relabel to " + r.Label + " did not complete, or is at work"
	case r.Has == "":
		return "not labelled: it has no label"
	case r.Has == r.Label:
		return "not known: the top directory has this label, but entries may have another; fastlabel verify reads them"
	}
	return "not labelled: it has " + words.Plain(r.Has)
}

func (l Labels) line() string {
	text := words.Plain(l.Label)
	switch {
	case l.Other:
		text = "other labels"
	case l.Label == "":
		text = "no label"
	}
	return words.Count(l.Count, "has ", "have ") + text
}

func (r *Result) line() string {
	label := ""
	if r.Label != "" { // one who forgot --level shall see it
		label = "; label " + r.Label
	}
	switch {
	case r.Trusted:
		return "already labelled (" + r.Skip + "), " + words.Seconds(r.Elapsed) + label
	case r.Seen == 0 && r.Code != exit.Done && r.Code < exit.TimedOut, r.Reason == "unsupported":
		return ""
	}
	var parts []string
	if r.Reason != "" {
		parts = append(parts, strings.TrimSuffix("incomplete ("+r.Reason+")", " (failed)"))
	}
	written := words.Thousands(r.Written) + " written"
	if r.Command == "verify" {
		written = words.Count(r.Written, "differs", "differ")
	} else if r.DryRun {
		written = words.Thousands(r.Written) + " to write"
	}
	parts = append(parts, words.Count(r.Seen, "entry", "entries"), written)
	for _, c := range []struct {
		n    int64
		name string
	}{{r.Right, " right"}, {r.Vanished, " vanished"}, {r.Skipped, " skipped"}} {
		if c.n != 0 {
			parts = append(parts, words.Thousands(c.n)+c.name)
		}
	}
	parts = append(parts, words.Thousands(r.Failed)+" failed", words.Seconds(r.Elapsed))
	if r.Elapsed >= 100*time.Millisecond { // of less a rate says nothing
		parts = append(parts, words.Thousands(int64(float64(r.Seen)/r.Elapsed.Seconds()))+"/s")
	}
	return strings.Join(parts, ", ") + label
}

// Far is the progress of a run.
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

// Fault is an error taken apart.
type Fault struct{ path, op, text string }

// FaultOf takes err apart; root is the path if it names none. What stands
// around an fs.PathError is kept in the text.
func FaultOf(root string, err error) Fault {
	f := Fault{path: root}
	var at *fs.PathError
	if !errors.As(err, &at) {
		f.text = words.Clean(strings.TrimPrefix(err.Error(), root+": "))
		return f
	}
	f.path = at.Path
	if about, ok := strings.CutPrefix(err.Error()+": ", at.Error()+": "); ok {
		f.op, f.text = words.Clean(at.Op), words.Clean(strings.TrimSuffix(at.Err.Error()+": "+about, ": "))
	} else {
		f.text = words.Clean(err.Error())
	}
	return f
}

// FailuresOf are the calls of a run that hung, each as a failure.
func FailuresOf(hung *relabel.HungError) []error {
	var errs []error
	for _, c := range hung.Calls {
		errs = append(errs, &fs.PathError{Op: c.Call, Path: c.Path, Err: errors.New("does not return")})
	}
	return errs
}

// String is a line for people, of what is known.
func (f Fault) String() string {
	line := f.text
	if f.op != "" {
		line = f.op + ": " + line
	}
	if f.path != "" {
		line = words.Quote(f.path) + ": " + line
	}
	return line
}
