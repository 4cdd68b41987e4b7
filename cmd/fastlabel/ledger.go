// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/metrics"
	"github.com/fastlabel/fastlabel/relabel"
)

// ledger keeps what became of the PATHs: of each for --metrics, and of all for the
// last line in the journal.
type ledger struct {
	reporter
	file    string // "": no metrics
	journal bool   // a last line is wanted
	command string
	dry     bool
	began   time.Time

	mu    sync.Mutex
	all   relabel.Report // the sums
	done  int            // PATHs
	at    map[string]int // by name, in paths
	paths []metrics.Path
}

func newLedger(c command, s *settings, stderr io.Writer) *ledger {
	return &ledger{
		file: s.metrics, journal: !s.quiet && isJournal(stderr),
		command: cmp.Or(c.name, "label"), dry: s.dryRun || c.name == "verify",
		began: time.Now(), at: map[string]int{},
	}
}

// check finds out whether there is somewhere to write to.
func (l *ledger) check() error {
	if l.file == "" {
		return nil
	}
	return metrics.Check(l.file)
}

// beside has the ledger keep what is told to r.
func (l *ledger) beside(r reporter) reporter {
	l.reporter = r
	return l
}

func (l *ledger) result(r result) {
	written := "written"
	if l.dry {
		written = "differs"
	}
	l.add(metrics.Path{Name: r.Root, ExitCode: r.code, Elapsed: r.Elapsed, Entries: []metrics.Count{
		{Result: written, N: r.Written},
		{Result: "right", N: r.Right},
		{Result: "vanished", N: r.Vanished},
		{Result: "skipped", N: r.Skipped},
		{Result: "failed", N: r.Failed},
	}})
	l.sum(r)
	l.reporter.result(r)
}

func (l *ledger) sum(r result) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all.Seen += r.Seen
	l.all.Written += r.Written
	l.all.Failed += r.Failed
}

// add keeps of two results of one name the worse: a file that has a series
// twice is refused as a whole.
func (l *ledger) add(p metrics.Path) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.done++
	if l.file == "" {
		return
	}
	i, ok := l.at[p.Name]
	switch {
	case !ok:
		l.at[p.Name] = len(l.paths)
		l.paths = append(l.paths, p)
	case worse(p.ExitCode, l.paths[i].ExitCode) == p.ExitCode:
		l.paths[i] = p
	}
}

// close writes the file and the last line.
func (l *ledger) close(stderr io.Writer, code int, operands []string) int {
	if l.file != "" {
		code = l.write(stderr, code, operands)
	}
	if l.journal {
		fmt.Fprintf(stderr, "%sfastlabel: %s\n", priorityOf(code), l.last(code))
	}
	return code
}

// last is the whole run in a line.
func (l *ledger) last(code int) string {
	line := fmt.Sprintf("exit %d", code)
	switch {
	case l.done == 1:
		line += ", 1 PATH"
	case l.done > 1:
		line += ", " + thousands(int64(l.done)) + " PATHs"
	}
	if l.all.Seen > 0 {
		written := "written"
		if l.dry {
			written = "to write"
		}
		line += fmt.Sprintf(", %s entries, %s %s, %s failed", thousands(l.all.Seen), thousands(l.all.Written), written, thousands(l.all.Failed))
	}
	return line + ", " + seconds(time.Since(l.began))
}

// write writes the metrics. A run that ended before it knew its PATHs is told for
// those of the command line, or, where all were in a list, for the path "".
func (l *ledger) write(stderr io.Writer, code int, operands []string) int {
	if len(l.paths) == 0 && code != exitDone {
		if len(operands) == 0 {
			operands = []string{""}
		}
		for _, o := range operands {
			l.add(metrics.Path{Name: o, ExitCode: code, Elapsed: time.Since(l.began)})
		}
	}
	run := metrics.Run{Command: l.command, Ended: time.Now(), Paths: slices.Clone(l.paths)}
	if err := metrics.Write(l.file, run); err != nil {
		fmt.Fprintf(stderr, "fastlabel: --metrics: %s\n", clean(err.Error()))
		return worse(code, exitFailed)
	}
	return code
}
