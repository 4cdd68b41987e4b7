// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"

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
}

// probeResult is what probe found at one PATH.
type probeResult struct {
	root, label, depth    string
	labelled, interrupted bool
}

// people prints results, failures and notes to stderr, and what is data (the
// changes with -v, the answers of probe) to stdout.
type people struct {
	out            *sink
	err            io.Writer
	verbose, quiet bool
	dry            bool
	journal        bool // lines bear a priority

	mu     sync.Mutex
	counts map[string]tally
}

// tally is the failures told and the entries skipped beneath a PATH.
type tally struct{ failed, passed int }

// counted is the tally of a PATH that is done.
func (p *people) counted(root string) tally {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := p.counts[root]
	delete(p.counts, root)
	return t
}

func (p *people) count(root string, failed, passed int) tally {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.counts == nil {
		p.counts = map[string]tally{}
	}
	t := p.counts[root]
	t.failed += failed
	t.passed += passed
	p.counts[root] = t
	return t
}

func (p *people) say(level, format string, a ...any) {
	if !p.journal {
		level = ""
	}
	fmt.Fprintf(p.err, level+format+"\n", a...)
}

func (p *people) failure(root string, err error) {
	if !errors.Is(err, errHangs) && p.count(root, 1, 0).failed > maxListed && !p.verbose {
		return
	}
	f := explain(root, err)
	if f.op != "" {
		f.text = f.op + ": " + f.text
	}
	p.say(levelError, "%s: %s", quote(f.path), f.text)
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
		from = " from " + plain(from)
	} else if p.dry { // every label was read
		from = " from no label"
	}
	p.out.line([]byte(did+" "+quote(path)+from+" to "+to), false)
}

func (p *people) skip(root, path, reason string) {
	if p.quiet {
		return
	}
	if p.count(root, 0, 1).passed <= maxListed || p.verbose {
		p.say(levelInfo, "%s: skipped: %s", quote(path), clean(reason))
	}
}

func (p *people) wait(root, holder string) {
	if !p.quiet {
		p.say(levelInfo, "%s: waiting for another relabel of this volume (%s)", plain(root), clean(holder))
	}
}

func (p *people) stall(root string, c relabel.HungCall) {
	switch {
	case p.quiet:
	case c.Call == "":
		p.say(levelWarning, "%s: waiting for the filesystem", plain(root))
	default:
		p.say(levelWarning, "%s: waiting for %s %s", plain(root), clean(c.Call), quote(c.Path))
	}
}

func (p *people) note(root, text string) {
	if p.quiet {
		return
	}
	if root != "" {
		text = plain(root) + ": " + text
	}
	p.say(levelInfo, "%s", clean(text))
}

func (p *people) probed(r probeResult) {
	if p.quiet {
		return
	}
	state := "not labelled"
	switch {
	case r.labelled:
		state = "labelled"
	case r.interrupted:
		state = "interrupted relabel to " + r.label
	}
	p.out.line([]byte(plain(r.root)+": "+state), true)
}

func (p *people) result(r result) {
	t := p.counted(r.Root)
	if !p.verbose && t.failed > maxListed {
		p.say(levelError, "%s: %s more failures; -v lists all", plain(r.Root), thousands(int64(t.failed-maxListed)))
	}
	if !p.verbose && t.passed > maxListed {
		p.say(levelInfo, "%s: %s more skipped; -v lists all", plain(r.Root), thousands(int64(t.passed-maxListed)))
	}
	if p.quiet {
		return
	}
	if r.Interrupted != "" {
		p.note(r.Root, "an earlier relabel to "+plain(r.Interrupted)+" was interrupted")
	}
	if line := resultLine(r); line != "" {
		p.say(priorityOf(r.code), "%s: %s", plain(r.Root), line)
	}
}

// resultLine is "" where a failure line has said all.
func resultLine(r result) string {
	switch {
	case !r.begun:
		return "not begun (" + r.reason + ")"
	case r.Trusted:
		return "already labelled (" + r.skip + "), " + seconds(r.Elapsed)
	case r.Seen == 0 && r.code != exitDone && r.code < exitDeadline:
		return ""
	}
	var parts []string
	if r.reason != "" {
		parts = append(parts, strings.TrimSuffix("incomplete ("+r.reason+")", " (failed)"))
	}
	entries, written := " entries", " written"
	if r.command == "restore" {
		written = " put back"
	}
	if r.Seen == 1 {
		entries = " entry"
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
	parts = append(parts, thousands(r.Seen)+entries, thousands(r.Written)+written)
	for _, c := range []struct {
		n    int64
		name string
	}{{r.Right, " right"}, {r.Vanished, " vanished"}, {r.Skipped, " skipped"}, {r.Unchanged, " directories unchanged"}} {
		if c.n != 0 {
			parts = append(parts, thousands(c.n)+c.name)
		}
	}
	if r.CopyUp > 0 {
		parts = append(parts, thousands(r.CopyUp)+" bytes to copy up")
	}
	parts = append(parts, thousands(r.Failed)+" failed", seconds(r.Elapsed))
	switch {
	case r.entriesLeft > 0:
		parts = append(parts, "about "+thousands(r.entriesLeft)+" left")
	case r.dirsLeft > 0:
		parts = append(parts, "at least "+thousands(r.dirsLeft)+" directories left")
	}
	return strings.Join(parts, ", ")
}

func thousands(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func seconds(d time.Duration) string {
	if d >= time.Second {
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return fmt.Sprintf("%.3f s", d.Seconds())
}
