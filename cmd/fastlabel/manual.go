// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/man"
)

// manualFirst and manualMore are what the page of fastlabel itself has besides
// --help, before it and behind it.
const manualFirst = `The label of PATH itself is written last, when all beneath it bears the
label and is on disk, and only if nothing failed: whoever finds it there may
pass over the whole. A run that is stopped looks done to nobody, and the next
one completes it. Nothing outside of PATH is labelled, whatever is renamed,
linked or mounted meanwhile. A symbolic link as PATH is labelled itself; with
a slash behind it, it is the directory that it leads to.

Which label a pod needs, and what its runtime does with the volume, fastlabel
explain says; with --for POD.yaml it takes the label from a pod.
`

const manualMore = `Progress:
Per cent and the time left are told where it is known how many entries there
are: at most as many as the filesystem has inodes in use, which df -i shows,
or about as many as the last run met, by the mark that it left. Where neither
is known, or more was seen, there are the time elapsed and the rate.

Signals:
SIGUSR1 prints how far it is. SIGINT, SIGTERM and SIGHUP stop it within a
second: it says how far it came and the command line that goes on. A second
one leaves at once, unless it is SIGHUP.

Environment:
Progress comes in whole lines where TERM is dumb. NOTIFY_SOCKET and
JOURNAL_STREAM are from systemd: its manager is told how far a run is, and
lines in the journal bear a priority.

Files:
/run/fastlabel holds a lock for each volume that is worked on. The root of a
volume that is done has the attribute trusted.fastlabel, for --skip unchanged.
`

// manual writes the pages of all commands to dir, from what --help shows of them.
// Their date is SOURCE_DATE_EPOCH, which makes them reproducible, or today.
func manual(dir string) error {
	date := time.Now()
	if n, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64); err == nil {
		date = time.Unix(n, 0)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, c := range commands() {
		p := c.page()
		p.Date, p.Version = date, versionName()
		if err := os.WriteFile(filepath.Join(dir, p.Name+".1"), []byte(p.Roff()), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// page is the command's manual page, but for its date.
func (c command) page() man.Page {
	p := man.Page{Name: pageName(c), About: "SELinux labels: " + c.about, Text: []string{c.more}, Example: c.example}
	listed := []command{c}
	if c.name == "" {
		listed = commands()
		p.Text = []string{manualFirst, wordsHelp, c.more, manualMore}
	}
	for _, each := range listed {
		p.Synopsis = append(p.Synopsis, each.usage())
	}
	for _, o := range offered(c.key) {
		if n := len(p.Groups); n == 0 || p.Groups[n-1].Title != o.group {
			p.Groups = append(p.Groups, man.Group{Title: o.group})
		}
		g := &p.Groups[len(p.Groups)-1]
		g.Options = append(g.Options, man.Option{Names: o.names(), Arg: o.arg, Text: o.help})
	}
	for _, other := range commands() {
		if other.name != c.name {
			p.SeeAlso = append(p.SeeAlso, pageName(other))
		}
	}
	p.SeeAlso = append(p.SeeAlso, "chcon")
	slices.Sort(p.SeeAlso)
	return p
}

func pageName(c command) string { return strings.ReplaceAll(c.call(), " ", "-") }
