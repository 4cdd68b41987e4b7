// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/outlook"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/seclabel"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/words"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/workload"
	"github.com/fastlabel/fastlabel/relabel"
)

// What a screen has room for.
const (
	shownMounts = 4
	shownAsks   = 4
	screenWide  = 79
)

// handler is the RuntimeClass of deploy/oci, which lets pods have the annotation.
const handler = "fastlabel-volumes"

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

// text is the explanation, in less than a screen; user says that this is not root, who alone can read a mark.
func (e explanation) text(user bool) string {
	var p page
	p.WriteString(words.Plain(e.Path) + "\n")
	e.where(&p)
	e.labels(&p, user)
	e.asked(&p)
	e.mounts(&p)
	e.runtimes(&p)
	e.advice(&p)
	return p.String()
}

func (e explanation) where(p *page) {
	m := e.Mount
	at := ""
	if m.Point != e.Real {
		at = " at " + words.Plain(m.Point)
	}
	p.line("is in", "%s, %s mounted%s %s", words.Clean(m.FSType), words.Plain(m.Source), at, words.Clean(m.Manner()))
	p.line("", "%s", words.Clean(m.Has()))
	if plugin := e.Plugin(); plugin != "" {
		p.line("", "mounted by the kubelet for %s", words.Clean(plugin))
	}
	if e.Real != e.Path {
		p.line("", "really %s", words.Plain(e.Real))
	}
}

func (e explanation) labels(p *page, user bool) {
	label := "none"
	if e.HasLabel {
		label = words.Plain(e.Label)
	}
	p.line("label", "%s", label)
	p.line("vouched", "%s", e.vouched(user))
}

// vouched words what says that all beneath PATH has PATH's label.
func (e explanation) vouched(user bool) string {
	c := e.root.Commit
	switch {
	case e.Mount.NoLabels != "":
		return "no: there is no label to write"
	case e.root.Interrupted:
		return "no: a relabel to the label that is asked for did not complete, or is under way"
	case c.Label != "" && c.Label != e.Label:
		return "no: the last run, " + ended(c) + ", was to " + words.Plain(c.Label)
	case c.Label != "":
		return fmt.Sprintf("yes: labelled by fastlabel, %s: %s, %s written", ended(c), words.Count(c.Entries, "entry", "entries"), words.Thousands(c.Written))
	case user:
		return "unknown: the record of a run takes root to read"
	case !e.root.Labelled:
		return "no: no record of a run"
	}
	return "only by the label itself: no record of a run"
}

func ended(c relabel.Commit) string { return c.Ended.UTC().Format("2006-01-02 15:04:05 UTC") }

func (e explanation) asked(p *page) {
	p.line("asked", "%s (%s)", e.want, short(e.from))
	if n := len(e.pods.Containers); n > 1 || n == 1 && e.future.Drawn {
		for i, c := range e.pods.Containers {
			if i == shownAsks && n > shownAsks+1 {
				p.line("", "and %d more containers", n-i)
				break
			}
			how := "level " + c.Level
			if c.Level == "" {
				how = "no level: another at each start"
			}
			if c.User != "" {
				how += ", user " + c.User
			}
			if c.LeftByCRIO != "" {
				how += "; CRI-O leaves it alone: " + c.LeftByCRIO
			}
			p.line("", "%s, container %s: %s", short(c.Pod), short(c.Name), words.Clean(how))
		}
	}
	if len(e.pods.Unread) > 0 {
		p.line("", "not read: %s", short(strings.Join(e.pods.Unread, ", ")))
	}
}

// short is of a name in FILE, which may be as long as FILE.
func short(name string) string { return words.Cut(words.Clean(name), 200) }

func (e explanation) mounts(p *page) {
	for i, m := range e.Beneath {
		head := ""
		if i == 0 {
			head = "mounts"
		}
		if i == shownMounts && len(e.Beneath) > shownMounts+1 {
			p.line(head, "and %d more", len(e.Beneath)-i)
			break
		}
		p.line(head, "%s: %s %s; %s", words.Plain(m.Point), words.Clean(m.FSType), words.Clean(m.Manner()), words.Clean(m.Has()))
	}
}

func (e explanation) runtimes(p *page) {
	ways := e.future.Ways()
	row := func(name, now, then string) {
		p.WriteString("  " + strings.TrimRight(fmt.Sprintf("%-26s %-22s %s", name, now, then), " ") + "\n")
	}
	changes := slices.ContainsFunc(ways, func(w outlook.Way) bool { return w.Now != w.Then })
	p.WriteString("\n")
	if changes {
		row("When a container starts", "now", "once PATH has the label")
	} else {
		row("When a container starts", "", "")
	}
	for _, w := range ways {
		then := ""
		if changes {
			then = w.Then.String()
		}
		row(w.Runtime, w.Now.String(), then)
	}
	p.WriteString("\n")
	for len(ways) > 0 { // those with one reason together
		why := ways[0].Why
		var names []string
		ways = slices.DeleteFunc(ways, func(w outlook.Way) bool {
			if w.Why == why {
				names = append(names, w.Runtime)
			}
			return w.Why == why
		})
		p.wrap("-", strings.Join(names, ", ")+": "+words.Clean(why))
	}
	for _, note := range e.future.Notes() {
		p.wrap("-", words.Clean(note))
	}
}

func (e explanation) advice(p *page) {
	p.WriteString("\n  What to write:\n")
	if command := e.toLabel(); command != "" {
		does := "The label, as root"
		if e.root.Interrupted {
			does += "; this resumes"
		}
		p.WriteString("    - " + does + ":\n        " + command + "\n")
	}
	for _, a := range e.future.Advice() {
		p.wrap("-", words.Clean(a))
	}
	if e.future.Labels() || e.future.Drawn {
		fmt.Fprintf(p, "    - In the pod (whole files are in deploy/oci and deploy/podman):\n"+
			"        annotations: {%s: \"true\"}\n        runtimeClassName: %s\n        securityContext: {seLinuxOptions: {level: %q}}\n",
			workload.TrySkip[1], handler, seclabel.Level(e.want))
	}
}
