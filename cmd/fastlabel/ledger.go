// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/metrics"
)

// ledger keeps what became of each PATH, for --metrics. Without the flag it is
// nil, and keeps nothing.
type ledger struct {
	reporter
	file    string
	command string
	dry     bool
	began   time.Time

	mu    sync.Mutex
	at    map[string]int // by name, in paths
	paths []metrics.Path
}

func newLedger(c command, s *settings) *ledger {
	if s.metrics == "" {
		return nil
	}
	l := &ledger{file: s.metrics, command: c.name, dry: s.dryRun || c.name == "verify", began: time.Now(), at: map[string]int{}}
	if l.command == "" {
		l.command = "label"
	}
	return l
}

// check finds out whether there is somewhere to write to.
func (l *ledger) check() error {
	if l == nil {
		return nil
	}
	return metrics.Check(l.file)
}

// beside has the ledger keep what is told to r.
func (l *ledger) beside(r reporter) reporter {
	if l == nil {
		return r
	}
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
	l.reporter.result(r)
}

// add keeps of two results of one name the worse: a file that has a series
// twice is refused as a whole.
func (l *ledger) add(p metrics.Path) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	i, ok := l.at[p.Name]
	switch {
	case !ok:
		l.at[p.Name] = len(l.paths)
		l.paths = append(l.paths, p)
	case worse(p.ExitCode, l.paths[i].ExitCode) == p.ExitCode:
		l.paths[i] = p
	}
}

// close writes the file. A run that ended before it knew its PATHs is told for
// those of the command line, or, where all were in a list, for the path "".
func (l *ledger) close(stderr io.Writer, code int, operands []string) int {
	if l == nil {
		return code
	}
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
