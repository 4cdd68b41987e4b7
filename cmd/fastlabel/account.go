// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"sync"
	"time"

	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/exit"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/metrics"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/report"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/site"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/wait"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/words"
)

// account keeps what became of each PATH, for --metrics.
type account struct {
	report.Reporter
	file    string // "": no metrics
	command string
	dry     bool
	began   time.Time
	checked bool // the file can be written

	mu    sync.Mutex
	at    map[string]int // by name, in paths
	paths []metrics.Path
}

func newAccount(s *settings) *account {
	return &account{
		file: s.metrics, command: cmp.Or(s.command, "label"), dry: s.dryRun || s.command == "verify",
		began: time.Now(), at: map[string]int{},
	}
}

// metricsError is what is wrong with the file of --metrics.
type metricsError struct{ error }

// check finds out, before the work, whether there is somewhere to write to. A file
// that is one of paths, or lies in one, is refused: it would be labelled with it,
// or be what it replaces.
func (a *account) check(ctx context.Context, paths []string) error {
	if a.file == "" || a.checked || ctx.Err() != nil {
		return nil
	}
	in := ""
	above, err := answer(ctx, "openat", a.file, func() (map[site.Identity]bool, error) { return site.Above(a.file) })
	if err == nil {
		if in, _ = firstOf(ctx, paths, above); in == "" && ctx.Err() != nil {
			return nil // a PATH does not answer, which the run tells
		}
	}
	if err == nil && in == "" {
		_, err = answer(ctx, "openat", a.file, func() (bool, error) { return true, metrics.Check(a.file) })
	}
	switch {
	case err == nil && in == "":
		a.checked = true
		return nil
	case err == nil:
		err = exit.UsageError{Err: fmt.Errorf("--metrics %s: it would be or lie in %s", words.Brief(a.file), words.Brief(in))}
	case !exit.IsEnd(ctx, err):
		err = metricsError{err}
	}
	a.file = "" // not to be tried again
	return err
}

func (a *account) Result(r report.Result) {
	written := "written"
	if a.dry {
		written = "differs"
	}
	a.add(metrics.Path{Name: r.Root, ExitCode: r.Code, Elapsed: r.Elapsed, Entries: []metrics.Count{
		{Result: written, N: r.Written},
		{Result: "right", N: r.Right},
		{Result: "vanished", N: r.Vanished},
		{Result: "skipped", N: r.Skipped},
		{Result: "failed", N: r.Failed},
	}})
	a.Reporter.Result(r)
}

// add keeps of two results of one name the worse: a file that has a series
// twice is refused as a whole.
func (a *account) add(p metrics.Path) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.file == "" {
		return
	}
	i, ok := a.at[p.Name]
	switch {
	case !ok:
		a.at[p.Name] = len(a.paths)
		a.paths = append(a.paths, p)
	case exit.Worse(p.ExitCode, a.paths[i].ExitCode) == p.ExitCode:
		a.paths[i] = p
	}
}

// write writes the metrics. A run that ended before it knew its PATHs is told for
// those of the command line, or, where all were in a list, for the path "".
func (a *account) write(ctx context.Context, stderr io.Writer, code int, operands []string) int {
	if a.file == "" {
		return code
	}
	if len(a.paths) == 0 && code != exit.Done {
		if len(operands) == 0 {
			operands = []string{""}
		}
		for _, o := range operands {
			a.add(metrics.Path{Name: o, ExitCode: code, Elapsed: time.Since(a.began)})
		}
	}
	if !a.checked { // the run ended before, or was another process's
		soon, cancel := context.WithTimeout(context.WithoutCancel(ctx), wait.Grace/3)
		defer cancel()
		switch err := a.check(soon, operands); {
		case errors.As(err, new(metricsError)):
			return metricsFailed(stderr, code, err)
		case a.file == "":
			return code
		}
	}
	run, file := metrics.Run{Command: a.command, Ended: time.Now(), Paths: slices.Clone(a.paths)}, a.file
	late, cancel := wait.Linger(ctx, wait.Grace)
	defer cancel()
	_, err := wait.Within(late, func() (bool, error) { return true, metrics.Write(file, run) })
	if err != nil && late.Err() != nil {
		err = &fs.PathError{Op: "write", Path: file, Err: report.ErrHangs}
	}
	if err != nil {
		return metricsFailed(stderr, code, err)
	}
	return code
}

func metricsFailed(stderr io.Writer, code int, err error) int {
	fmt.Fprintf(stderr, "fastlabel: --metrics: %s\n", words.Clean(err.Error()))
	return exit.Worse(code, exit.Failed)
}
