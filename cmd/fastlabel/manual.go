// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/man"
)

// manualFirst and manualMore are what the page of fastlabel itself has besides
// --help, before it and behind it.
const manualFirst = `The label of PATH itself is written last, when everything beneath it has the
label and is on disk, and only if nothing failed. So a PATH that has the label
can be skipped. An interrupted run is never mistaken for a finished one; the
next run completes it. Nothing outside PATH is labelled, whatever is renamed,
linked or mounted during the run. A symbolic link as PATH is labelled itself;
with a slash behind it, PATH is the directory that the link leads to.

All PATHs are looked up before the first is changed. Put -- before a PATH that
is named like a command. fastlabel label PATH is the same as fastlabel PATH, and
help COMMAND as COMMAND --help. -R and -r are taken, without effect.
`

const manualMore = `Where an entry failed, PATH itself is left without the label, and counts as
skipped.

Progress:
Per cent and the time left need a total: at most the inodes in use on the
filesystem, as df -i shows them, where PATH is its top. Without a total, or
when more entries were seen, the elapsed time and the rate are shown.

Signals:
SIGUSR1 prints the progress. SIGINT, SIGTERM and SIGHUP stop the run within a
second; it prints how far it came, and the command that resumes. A second signal
exits at once, unless it is SIGHUP.

Environment:
Progress comes in whole lines where TERM is dumb. NOTIFY_SOCKET and
JOURNAL_STREAM are from systemd: its manager is told how far a run is, and
lines in the journal have a priority.

Files:
/run/fastlabel holds a lock for each volume that is worked on.
`

// manual writes the pages of all commands to dir, from what --help shows of them.
// Their date is SOURCE_DATE_EPOCH, which makes them reproducible, or today.
func manual(root *cobra.Command, dir string) error {
	date := time.Now()
	if n, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64); err == nil {
		date = time.Unix(n, 0)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, c := range shown(root) {
		p := manualPage(c)
		p.Date, p.Version = date, versionName()
		if err := os.WriteFile(filepath.Join(dir, p.Name+".1"), []byte(p.Roff()), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// manualPage is the command's manual page, but for its date.
func manualPage(c *cobra.Command) man.Page {
	p := man.Page{Name: pageName(c), About: "SELinux labels: " + c.Short, Groups: grouped(c), Text: []string{c.Long}, Example: c.Example, SeeAlso: []string{"chcon"}}
	if !c.HasParent() {
		p.Text = []string{manualFirst, c.Long, listed + inJSON, manualMore}
	}
	for _, each := range shown(c) {
		p.Synopsis = append(p.Synopsis, each.UseLine())
	}
	for _, other := range shown(c.Root()) {
		if other != c {
			p.SeeAlso = append(p.SeeAlso, pageName(other))
		}
	}
	slices.Sort(p.SeeAlso)
	return p
}

func pageName(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") }
