// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/outlook"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/stanza"
)

// explained prints an explanation in less than a screen.
func (p *people) explained(e explanation) {
	text := e.stanza
	if text == "" {
		text = e.text()
	}
	p.out.line([]byte(strings.TrimSuffix(text, "\n")), true)
}

// What a screen has room for.
const (
	shownLabels = 6
	shownMounts = 4
	shownAsks   = 4
	screenWide  = 79
)

// page is text under headings.
type page struct{ strings.Builder }

func (p *page) line(head, format string, a ...any) {
	fmt.Fprintf(p, "  %-10s %s\n", head, fmt.Sprintf(format, a...))
}

// wrap prints a sentence behind a mark.
func (p *page) wrap(mark, sentence string) {
	const indent = "    "
	line := indent + mark
	for _, word := range strings.Fields(sentence) {
		if len(line)+1+len(word) > screenWide {
			p.WriteString(line + "\n")
			line = indent + strings.Repeat(" ", len(mark))
		}
		line += " " + word
	}
	p.WriteString(line + "\n")
}

func (e explanation) text() string {
	var p page
	p.WriteString(plain(e.path) + "\n")
	e.where(&p)
	e.labels(&p)
	e.asked(&p)
	e.sampled(&p)
	e.mounts(&p)
	e.runtimes(&p)
	fmt.Fprintf(&p, "\n  Does labelling it beforehand help? %s.\n", capital(string(e.help)))
	for _, r := range e.reasons {
		p.wrap("-", r)
	}
	if e.help != outlook.No || e.future.Drawn {
		fmt.Fprintf(&p, "\n  For this label, in the pod (--output kubernetes; or crio, podman):\n"+
			"    annotations: {%s: \"true\"}\n    runtimeClassName: %s\n    securityContext: {seLinuxOptions: {level: %q}}\n",
			stanza.TrySkip, stanza.Handler, levelOf(e.want))
	}
	p.WriteString("\n")
	return p.String()
}

func capital(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

func (e explanation) where(p *page) {
	m := e.mount
	what := "in " + m.fstype
	switch {
	case e.whole && m.fstype == "btrfs":
		what = "a subvolume of btrfs"
	case e.whole:
		what = "the whole of " + m.fstype
	}
	at := ""
	if !e.top {
		at = " at " + plain(m.point)
	}
	bears := m.bears()
	if m.noLabels != "" {
		bears = "bears none:"
	}
	p.line("is", "%s, %s mounted%s %s; %s", clean(what), plain(m.source), at, clean(m.manner()), bears)
	if m.noLabels != "" {
		p.line("", "%s", clean(m.noLabels))
	}
	if plugin := e.plugin(); plugin != "" {
		p.line("", "mounted by the kubelet for %s", clean(plugin))
	}
	if e.real != e.path {
		p.line("", "really %s", plain(e.real))
	}
}

func (e explanation) labels(p *page) {
	switch {
	case !e.hasLabel:
		p.line("bears", "no label")
	case e.sealed:
		p.line("bears", "%s", plain(e.label))
		p.line("", "the seal of an interrupted relabel: run fastlabel again, it goes on")
	default:
		p.line("bears", "%s", plain(e.label))
	}
	if c := e.commit; c.Label != "" {
		to := "to this label"
		if c.Label != e.label {
			to = "to " + c.Label + ", which it no longer bears"
		}
		p.line("last run", "%s, %s: %s entries, %s written", c.Ended.UTC().Format("2006-01-02 15:04 MST"), clean(to), thousands(c.Entries), thousands(c.Written))
	}
}

func (e explanation) asked(p *page) {
	p.line("asked", "%s (%s)", e.want, clean(e.from))
	if n := len(e.pods.Containers); n > 1 || n == 1 && e.future.Drawn {
		for i, c := range e.pods.Containers {
			if i == shownAsks && n > shownAsks+1 {
				p.line("", "and %d more containers", n-i)
				break
			}
			how := "level " + c.Level
			switch {
			case c.Left != "":
				how = "not relabelled: " + c.Left
			case c.Level == "":
				how = "no level: another at each start"
			}
			if c.User != "" {
				how += ", user " + c.User
			}
			if c.LeftByCRIO != "" {
				how += "; CRI-O leaves it alone: " + c.LeftByCRIO
			}
			p.line("", "%s, container %s: %s", clean(c.Pod), clean(c.Name), clean(how))
		}
	}
	for _, kind := range e.pods.Unread {
		p.line("", "not read: the kind %s", clean(kind))
	}
}

func (e explanation) sampled(p *page) {
	s := e.sample
	if !e.directory {
		return
	}
	what := fmt.Sprintf("%s, all read in %s", entriesIn(s.Entries), seconds(s.Elapsed))
	if !s.Whole {
		what = fmt.Sprintf("%s; a sample of %s was read in %s", e.size(), thousands(s.Entries), seconds(s.Elapsed))
	}
	p.line("holds", "%s", what)
	if len(s.Labels) > 0 {
		fmt.Fprintf(p, "  %10s %11s\n", "on top", "beneath")
	}
	for i, c := range s.Labels {
		if i == shownLabels && len(s.Labels) > shownLabels+1 {
			p.line("", "%11s and %d labels more", "", len(s.Labels)-i)
			break
		}
		label := "no label"
		if c.Label != "" {
			label = plain(c.Label)
		}
		fmt.Fprintf(p, "  %10s %11s  %s\n", thousands(c.Top), thousands(c.Beneath), label)
	}
	if s.Others > 0 {
		p.line("", "%11s  with still others", thousands(s.Others))
	}
	if s.Failed > 0 {
		f := explain(e.path, s.First)
		p.line("", "%s could not be read, such as %s: %s: %s", thousands(s.Failed), quote(f.path), f.op, f.text)
	}
}

// size words how many entries there are.
func (e explanation) size() string {
	f := e.future
	switch f.Most {
	case 0:
		return "at least " + entriesIn(f.Least)
	case f.Least:
		return fmt.Sprintf("%s (%s)", entriesIn(f.Least), e.counted)
	}
	return fmt.Sprintf("%s to %s (%s)", thousands(f.Least), entriesIn(f.Most), e.counted)
}

func entriesIn(n int64) string {
	if n == 1 {
		return "1 entry"
	}
	return thousands(n) + " entries"
}

func (e explanation) mounts(p *page) {
	for i, m := range e.beneath {
		head := ""
		if i == 0 {
			head = "mounts"
		}
		if i == shownMounts && len(e.beneath) > shownMounts+1 {
			p.line(head, "and %d more", len(e.beneath)-i)
			break
		}
		p.line(head, "%s: %s %s; %s", plain(m.point), clean(m.fstype), clean(m.manner()), clean(m.bears()))
	}
}

func (e explanation) runtimes(p *page) {
	then := "once it bears the label"
	if e.future.Drawn {
		then = "no label fits twice"
	}
	fmt.Fprintf(p, "\n  %-26s %-29s %s\n", "When a container starts", "now", then)
	for _, w := range e.future.Ways() {
		line := fmt.Sprintf("  %-26s %-29s %s", w.Runtime, e.work(w.Now), e.work(w.Then))
		p.WriteString(strings.TrimRight(line, " ") + "\n")
	}
}

// work words what is done and how long it takes.
func (e explanation) work(w outlook.Work) string {
	does := map[outlook.Work]string{
		outlook.None: "nothing", outlook.Root: "reads one label", outlook.Reads: "reads all", outlook.ReadsOnce: "reads all once",
		outlook.Writes: "writes all", outlook.Labels: "labels all",
	}[w]
	least, most, ok := e.future.Cost(w)
	switch {
	case !ok:
		return does + ", time unknown"
	case most == 0:
		return does
	}
	return does + ", " + spanning(least, most)
}

// spanning words an estimate, no finer than it is known.
func spanning(least, most time.Duration) string {
	if most < time.Second {
		return "under 1 s"
	}
	from, unit := rounded(least, false)
	to, name := rounded(most, true)
	switch {
	case from == 0:
		return fmt.Sprintf("up to %d %s", to, name)
	case unit == name:
		return fmt.Sprintf("%d to %d %s", from, to, name)
	}
	return fmt.Sprintf("%d %s to %d %s", from, unit, to, name)
}

func rounded(d time.Duration, up bool) (n int64, name string) {
	unit, name := time.Second, "s"
	switch {
	case d > 90*time.Minute:
		unit, name = time.Hour, "h"
	case d > 90*time.Second:
		unit, name = time.Minute, "min"
	}
	if up {
		d += unit - 1
	}
	return int64(d / unit), name
}
