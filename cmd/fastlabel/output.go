// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/exit"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/stream"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/words"
	"github.com/fastlabel/fastlabel/relabel"
)

// maxListed is how many failures, and how many skipped entries, are listed for
// each PATH without -v: about a screen.
const maxListed = 20

// reporter prints what happens: lines for people, or JSON.
type reporter interface {
	failure(root string, err error)
	change(root, path, from, to string)
	skip(root, path, reason string)
	wait(root, holder string)
	stall(root string, c relabel.HungCall)
	note(root, text string)
	probed(p probeResult)
	explained(e explanation)
	result(r result)
}

// result is what became of one PATH.
type result struct {
	relabel.Report
	command string // "", "verify"
	skip    string // --skip
	dryRun  bool
	begun   bool
	code    int
	reason  string // why it is not complete

	// What a run that was stopped knows of the rest; 0 is nothing.
	entriesLeft, dirsLeft int64
	from                  bound // entriesLeft
}

// probeResult is what probe found at one PATH.
type probeResult struct {
	root, label, depth    string
	labelled, interrupted bool
	has                   string    // the label that is there instead; "" if unknown
	bare                  bool      // there is none
	run                   time.Time // when the run ended that vouches for it; zero if none does
}

// people prints results, failures and notes to stderr, and what is data (the
// changes with -v, the answers of probe and verify) to stdout.
type people struct {
	out            *stream.Sink
	err            io.Writer
	verbose, quiet bool
	dry            bool
	journal        bool // lines bear a priority
	user           bool // not root: what is denied has one cause

	mu     sync.Mutex
	counts map[string]tally
}

// tally is the failures told and the entries skipped beneath a PATH, and the
// failures that have one cause: this user is not root.
type tally struct{ failed, passed, denied int }

// counted is the tally of a PATH that is done.
func (p *people) counted(root string) tally {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := p.counts[root]
	delete(p.counts, root)
	return t
}

func (p *people) count(root string, failed, passed, denied int) tally {
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

func (p *people) say(level, format string, a ...any) {
	if !p.journal {
		level = ""
	}
	fmt.Fprintf(p.err, level+"fastlabel: "+format+"\n", a...)
}

func (p *people) failure(root string, err error) {
	if p.user && root != "" && !p.verbose && (errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EACCES)) {
		p.count(root, 0, 0, 1)
		return
	}
	if !errors.Is(err, errHangs) && p.count(root, 1, 0, 0).failed > maxListed && !p.verbose {
		return
	}
	p.say(levelError, "%s", explain(root, err))
}

func (p *people) change(_, path, from, to string) {
	if !p.verbose {
		return
	}
	if to == "" { // restored
		to = "no label"
	}
	did := "relabelled"
	if p.dry {
		did = "would relabel"
	}
	if from != "" {
		from = " from " + words.Plain(from)
	} else if p.dry { // every label was read
		from = " from no label"
	}
	p.out.Line([]byte(did+" "+words.Quote(path)+from+" to "+to), false)
}

func (p *people) skip(root, path, reason string) {
	if p.quiet {
		return
	}
	if p.count(root, 0, 1, 0).passed <= maxListed || p.verbose {
		p.say(levelInfo, "%s: skipped: %s", words.Quote(path), words.Clean(reason))
	}
}

func (p *people) wait(root, holder string) {
	if !p.quiet {
		p.say(levelInfo, "%s: waiting for another relabel of this volume (%s)", words.Plain(root), words.Clean(holder))
	}
}

func (p *people) stall(root string, c relabel.HungCall) {
	switch {
	case p.quiet:
	case c.Call == "":
		p.say(levelWarning, "%s: waiting for the filesystem", words.Plain(root))
	default:
		p.say(levelWarning, "%s: waiting for %s %s", words.Plain(root), words.Clean(c.Call), words.Quote(c.Path))
	}
}

func (p *people) note(root, text string) {
	if p.quiet {
		return
	}
	if root != "" {
		text = words.Plain(root) + ": " + text
	}
	p.say(levelInfo, "%s", words.Clean(text))
}

func (p *people) probed(r probeResult) {
	if p.quiet {
		return
	}
	p.out.Line([]byte(words.Plain(r.root)+": "+r.words()), true)
}

// words is the answer, and what vouches for it.
func (r probeResult) words() string {
	switch {
	case r.labelled && !r.run.IsZero():
		return "labelled by fastlabel on " + r.run.UTC().Format("2006-01-02 15:04:05 UTC")
	case r.labelled && r.depth == "top":
		return "labelled: the root and its entries have this label; no record of a run"
	case r.labelled:
		return "labelled: the root has this label; no record of a run"
	case r.interrupted:
		return "not labelled: a relabel to " + r.label + " did not complete, or is at work"
	case r.bare:
		return "not labelled: it has no label"
	case r.has == "":
		return "not labelled"
	case r.has == r.label:
		return "not labelled: the root has this label, not all of its entries"
	}
	return "not labelled: it has " + words.Plain(r.has)
}

func (p *people) result(r result) {
	t := p.counted(r.Root)
	if !p.verbose && t.failed > maxListed {
		p.say(levelError, "%s: %s more failures; -v lists all", words.Plain(r.Root), words.Thousands(int64(t.failed-maxListed)))
	}
	if t.denied > 0 {
		p.say(levelError, "%s: not root: %s of its entries belong to others, or are closed to this user; -v lists them", words.Plain(r.Root), words.Thousands(int64(t.denied)))
	}
	if !p.verbose && t.passed > maxListed {
		p.say(levelInfo, "%s: %s more skipped; -v lists all", words.Plain(r.Root), words.Thousands(int64(t.passed-maxListed)))
	}
	if p.quiet {
		return
	}
	switch {
	case r.Interrupted == "":
	case r.dryRun || r.command == "verify": // these take no lock
		p.note(r.Root, "a relabel to "+words.Plain(r.Interrupted)+" did not complete, or is at work")
	default:
		p.note(r.Root, "an earlier relabel to "+words.Plain(r.Interrupted)+" did not complete")
	}
	line := resultLine(r)
	switch {
	case line == "":
	case r.command == "verify" && r.begun:
		p.out.Line([]byte(words.Plain(r.Root)+": "+line), true)
	default:
		_ = p.out.Flush() // the list comes first; an error is told at the end
		p.say(priorityOf(r.code), "%s: %s", words.Plain(r.Root), line)
	}
}

// resultLine is "" where a failure line has said all.
func resultLine(r result) string {
	switch {
	case !r.begun:
		return "not begun (" + r.reason + ")"
	case r.Trusted:
		return "already labelled (" + r.skip + "), " + words.Seconds(r.Elapsed) + withLabel(r)
	case r.Seen == 0 && r.code != exit.Done && r.code < exit.TimedOut, r.reason == "unsupported":
		return ""
	}
	var parts []string
	if r.reason != "" {
		parts = append(parts, strings.TrimSuffix("incomplete ("+r.reason+")", " (failed)"))
	}
	written := " written"
	if r.command == "restore" {
		written = " put back"
	}
	switch {
	case r.command == "verify" && r.Written == 1:
		written = " differs"
	case r.command == "verify":
		written = " differ"
	case r.dryRun && r.command == "restore":
		written = " to put back"
	case r.dryRun:
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
	if r.Unchanged != 0 {
		parts = append(parts, words.Count(r.Unchanged, "directory", "directories")+" unchanged")
	}
	parts = append(parts, words.Thousands(r.Failed)+" failed", words.Seconds(r.Elapsed))
	var left []string
	if r.dirsLeft > 0 {
		left = append(left, "at least "+words.Count(r.dirsLeft, "directory", "directories"))
	}
	if r.entriesLeft > 0 {
		left = append(left, r.from.words(words.Count(r.entriesLeft, "entry", "entries")))
	}
	if len(left) > 0 {
		parts = append(parts, strings.Join(left, " and ")+" left")
	}
	return strings.Join(parts, ", ") + withLabel(r)
}

// withLabel names the label: one who forgot --level shall see it.
func withLabel(r result) string {
	if r.command == "restore" || r.Label == "" {
		return ""
	}
	return "; label " + r.Label
}
