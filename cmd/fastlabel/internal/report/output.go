// SPDX-License-Identifier: Apache-2.0

// Package report says what happens in a run: lines for people, or JSON for programs.
// It knows no flags: a main that has them sets the fields.
package report

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"syscall"

	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/exit"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/stream"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/words"
	"github.com/fastlabel/fastlabel/relabel"
)

// MaxListed is how many failures, and how many skipped entries, are listed for
// each PATH without -v: about a screen.
const MaxListed = 20

// Reporter prints what happens: lines for people, or JSON.
type Reporter interface {
	Failure(root string, err error)
	Change(root, path, from, to string)
	Skip(root, path, reason string)
	Wait(root, holder string)
	Stall(root string, c relabel.HungCall)
	Note(root, text string)
	Probed(p Probe)
	Result(r Result)
}

// Result is what became of one PATH.
type Result struct {
	relabel.Report
	Command string // "", "verify"
	Skip    string // --skip
	DryRun  bool
	Begun   bool
	Code    int
	Reason  string // why it is not complete

	// What a run that was stopped knows of the rest; 0 is nothing.
	EntriesLeft, DirsLeft int64
}

// Probe is what probe found at one PATH.
type Probe struct {
	Root, Label, Depth    string
	Labelled, Interrupted bool
	Has                   string // the label that is there instead; "" if unknown
	Bare                  bool   // there is none
}

// People prints results, failures and notes to stderr, and what is data (the
// changes with -v, the answers of probe and verify) to stdout.
type People struct {
	Out            *stream.Sink
	Err            io.Writer
	Verbose, Quiet bool
	Dry            bool
	Journal        bool // lines have a priority
	User           bool // not root: what is denied has one cause

	mu     sync.Mutex
	counts map[string]tally
}

// tally is the failures told and the entries skipped beneath a PATH, and the
// failures that have one cause: this user is not root.
type tally struct{ failed, passed, denied int }

// counted is the tally of a PATH that is done.
func (p *People) counted(root string) tally {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := p.counts[root]
	delete(p.counts, root)
	return t
}

func (p *People) count(root string, failed, passed, denied int) tally {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.counts == nil {
		p.counts = map[string]tally{}
	}
	t := p.counts[root]
	t.failed += failed
	t.passed += passed
	t.denied += denied
	p.counts[root] = t
	return t
}

func (p *People) say(level, format string, a ...any) {
	if !p.Journal {
		level = ""
	}
	fmt.Fprintf(p.Err, level+"fastlabel: "+format+"\n", a...)
}

func (p *People) Failure(root string, err error) {
	if p.User && root != "" && !p.Verbose && (errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EACCES)) {
		p.count(root, 0, 0, 1)
		return
	}
	if !errors.Is(err, ErrHangs) && p.count(root, 1, 0, 0).failed > MaxListed && !p.Verbose {
		return
	}
	p.say(LevelError, "%s", FaultOf(root, err))
}

func (p *People) Change(_, path, from, to string) {
	if !p.Verbose {
		return
	}
	did := "relabelled"
	if p.Dry {
		did = "would relabel"
	}
	if from != "" {
		from = " from " + words.Plain(from)
	} else if p.Dry { // every label was read
		from = " from no label"
	}
	p.Out.Line([]byte(did+" "+words.Quote(path)+from+" to "+to), false)
}

func (p *People) Skip(root, path, reason string) {
	if p.Quiet {
		return
	}
	if p.count(root, 0, 1, 0).passed <= MaxListed || p.Verbose {
		p.say(levelInfo, "%s: skipped: %s", words.Quote(path), words.Clean(reason))
	}
}

func (p *People) Wait(root, holder string) {
	if !p.Quiet {
		p.say(levelInfo, "%s: waiting for another relabel of this volume (%s)", words.Plain(root), words.Clean(holder))
	}
}

func (p *People) Stall(root string, c relabel.HungCall) {
	switch {
	case p.Quiet:
	case c.Call == "":
		p.say(levelWarning, "%s: waiting for the filesystem", words.Plain(root))
	default:
		p.say(levelWarning, "%s: waiting for %s %s", words.Plain(root), words.Clean(c.Call), words.Quote(c.Path))
	}
}

func (p *People) Note(root, text string) {
	if p.Quiet {
		return
	}
	if root != "" {
		text = words.Plain(root) + ": " + text
	}
	p.say(levelInfo, "%s", words.Clean(text))
}

func (p *People) Probed(r Probe) {
	if p.Quiet {
		return
	}
	p.Out.Line([]byte(words.Plain(r.Root)+": "+r.words()), true)
}

// words is the answer.
func (r Probe) words() string {
	switch {
	case r.Labelled && r.Depth == "top":
		return "labelled: the root and its entries have this label"
	case r.Labelled:
		return "labelled: the root has this label"
	case r.Interrupted:
		return "not labelled: a relabel to " + r.Label + " did not complete, or is at work"
	case r.Bare:
		return "not labelled: it has no label"
	case r.Has == "":
		return "not labelled"
	case r.Has == r.Label:
		return "not labelled: the root has this label, not all of its entries"
	}
	return "not labelled: it has " + words.Plain(r.Has)
}

func (p *People) Result(r Result) {
	t := p.counted(r.Root)
	if !p.Verbose && t.failed > MaxListed {
		p.say(LevelError, "%s: %s more failures; -v lists all", words.Plain(r.Root), words.Thousands(int64(t.failed-MaxListed)))
	}
	if t.denied > 0 {
		p.say(LevelError, "%s: not root: %s of its entries belong to others, or are closed to this user; -v lists them", words.Plain(r.Root), words.Thousands(int64(t.denied)))
	}
	if !p.Verbose && t.passed > MaxListed {
		p.say(levelInfo, "%s: %s more skipped; -v lists all", words.Plain(r.Root), words.Thousands(int64(t.passed-MaxListed)))
	}
	if p.Quiet {
		return
	}
	switch {
	case r.Interrupted == "":
	case r.DryRun || r.Command == "verify": // these take no lock
		p.Note(r.Root, "a relabel to "+words.Plain(r.Interrupted)+" did not complete, or is at work")
	default:
		p.Note(r.Root, "an earlier relabel to "+words.Plain(r.Interrupted)+" did not complete")
	}
	line := ResultLine(r)
	switch {
	case line == "":
	case r.Command == "verify" && r.Begun:
		p.Out.Line([]byte(words.Plain(r.Root)+": "+line), true)
	default:
		_ = p.Out.Flush() // the list comes first; an error is told at the end
		p.say(PriorityOf(r.Code), "%s: %s", words.Plain(r.Root), line)
	}
}

// ResultLine is "" where a failure line has said all.
func ResultLine(r Result) string {
	switch {
	case !r.Begun:
		return "not begun (" + r.Reason + ")"
	case r.Trusted:
		return "already labelled (" + r.Skip + "), " + words.Seconds(r.Elapsed) + withLabel(r)
	case r.Seen == 0 && r.Code != exit.Done && r.Code < exit.TimedOut, r.Reason == "unsupported":
		return ""
	}
	var parts []string
	if r.Reason != "" {
		parts = append(parts, strings.TrimSuffix("incomplete ("+r.Reason+")", " (failed)"))
	}
	written := " written"
	switch {
	case r.Command == "verify" && r.Written == 1:
		written = " differs"
	case r.Command == "verify":
		written = " differ"
	case r.DryRun:
		written = " to write"
	}
	parts = append(parts, words.Count(r.Seen, "entry", "entries"), words.Thousands(r.Written)+written)
	for _, c := range []struct {
		n    int64
		name string
	}{{r.Right, " right"}, {r.Vanished, " vanished"}, {r.Skipped, " skipped"}} {
		if c.n != 0 {
			parts = append(parts, words.Thousands(c.n)+c.name)
		}
	}
	parts = append(parts, words.Thousands(r.Failed)+" failed", words.Seconds(r.Elapsed))
	var left []string
	if r.DirsLeft > 0 {
		left = append(left, "at least "+words.Count(r.DirsLeft, "directory", "directories"))
	}
	if r.EntriesLeft > 0 {
		left = append(left, "at most "+words.Count(r.EntriesLeft, "entry", "entries"))
	}
	if len(left) > 0 {
		parts = append(parts, strings.Join(left, " and ")+" left")
	}
	return strings.Join(parts, ", ") + withLabel(r)
}

// withLabel names the label: one who forgot --level shall see it.
func withLabel(r Result) string {
	if r.Label == "" {
		return ""
	}
	return "; label " + r.Label
}

// Priorities in front of a line, as syslog has them.
const (
	LevelError   = "<3>"
	levelWarning = "<4>"
	levelNotice  = "<5>"
	levelInfo    = "<6>"
)

func PriorityOf(code int) string {
	switch code {
	case exit.Done:
		return levelInfo
	case exit.Differs:
		return levelNotice
	case exit.TimedOut, exit.Interrupted, exit.Terminated:
		return levelWarning
	}
	return LevelError
}
