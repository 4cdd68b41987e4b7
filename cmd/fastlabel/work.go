// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/pflag"
	"golang.org/x/time/rate"

	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/exit"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/report"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/site"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/words"
	"github.com/fastlabel/fastlabel/relabel"
)

// job is a run over all PATHs: of label, verify or probe.
type job struct {
	app
	*settings
	report.Reporter
	mounts site.Mounts
	label  string            // canonical
	looked map[string]looked // what was found out about the PATHs before

	progress *progress     // nil in the hook
	limiter  *rate.Limiter // nil: no limit

	lockless bool     // that there is no place for locks was told
	empty    bool     // it was asked of an empty PATH whether it is to be mounted
	left     []string // PATHs that the end of the context left undone
}

// prepare finds the paths and the label, before anything is begun.
func (j *job) prepare(ctx context.Context, stdin io.Reader, paths []string) ([]string, error) {
	if len(paths) == 0 && j.filesFrom == "" {
		return nil, exit.UsageError{Err: errors.New("no PATH given")}
	}
	if slices.Contains(paths, "") {
		return nil, exit.UsageError{Err: errors.New("a PATH is empty")}
	}
	var err error
	if j.command != "restorecon" {
		if j.label, err = target(ctx, j.settings); err != nil {
			return nil, err
		}
	}
	if err := j.byRules(ctx); err != nil {
		return nil, err
	}
	all := paths
	if j.filesFrom != "" {
		text, err := input(ctx, stdin, j.filesFrom)
		if err != nil {
			return nil, err
		}
		more, err := splitPaths(text, j.filesFrom, j.null)
		if err != nil {
			return nil, err
		}
		all = slices.Concat(paths, more)
	}
	if j.command == "restorecon" {
		if all, err = j.globbed(ctx, all); err != nil {
			return nil, err
		}
	}
	if j.ignoreMissing {
		all = slices.DeleteFunc(all, func(p string) bool { _, err := j.lstat(p); return isMissing(err) })
	}
	if len(all) == 0 {
		return nil, nil
	}
	if err := j.matchExclude(ctx, all); err != nil {
		return nil, err
	}
	if err := j.lookUp(ctx, paths, all); err != nil {
		return nil, err
	}
	return all, j.aboutPolicy()
}

// each has do do each PATH in its turn. Those that are left when ctx ends are counted.
func (j *job) each(ctx context.Context, paths []string, do func(ctx context.Context, path string) int) int {
	code := exit.Done
	for i, path := range paths {
		if ctx.Err() == nil {
			code = exit.Worse(code, do(ctx, path))
			continue
		}
		why, reason := exit.Of(ctx)
		if left := paths[i:]; len(left) == 1 {
			j.Note(path, "not begun ("+reason+")")
		} else {
			j.Note("", words.Thousands(int64(len(left)))+" PATHs were not begun ("+reason+")")
		}
		j.left = append(j.left, paths[i:]...)
		return exit.Worse(code, why)
	}
	return code
}

// one does one PATH.
func (j *job) one(ctx context.Context, path string) int {
	dry := j.dryRun || j.command == "verify"
	t := &report.Source{Reporter: j.Reporter, Root: path, Listed: report.MaxListed, Verify: j.command == "verify"}
	if j.json || j.verbose > 0 {
		t.Listed = 0
	}
	if j.verbose == 1 && !j.json && t.Verify {
		t.Changes = report.MaxListed
	}
	t.User = os.Geteuid() != 0 && t.Listed > 0 && j.command != "hook"
	o := j.engine(t)
	u := j.progress.begin(path)
	j.watched(o, u)
	check := dry
	if j.looked[path].readOnly && j.command != "verify" {
		// What is right already is done; the first label that differs ends the check.
		check = true
		differs, stop := context.WithCancelCause(ctx)
		defer stop(nil)
		ctx, o.Trace.Change = differs, func(string, string, string) { stop(exit.ErrDiffers) }
	}
	rep, err := j.tree(ctx, path, j.label, o, check)
	j.progress.end()
	rep.Root, rep.Label = path, j.label
	rep.Elapsed -= u.stopped()
	if errors.Is(context.Cause(ctx), exit.ErrDiffers) {
		err = fmt.Errorf("%w: %w", &fs.PathError{Op: "relabel", Path: path, Err: syscall.EROFS}, exit.ErrDiffers)
		rep = relabel.Report{Root: path, Label: j.label, Elapsed: rep.Elapsed}
	}
	t.End(ctx, err)
	code, reason := exit.Outcome(ctx, rep, err, dry)
	r := report.Result{
		Report: rep, Command: j.command, Skip: j.trust, DryRun: dry,
		Code: code, Reason: reason, Labels: t.Labels(),
	}
	if code >= exit.TimedOut {
		j.left = append(j.left, path)
	}
	if code != exit.Refused && rep.Skipped == 0 { // else the link itself is excluded, or without a rule
		j.aboutLink(path, dry)
	}
	if rep.Seen == 1 && !rep.Trusted && j.command != "hook" && j.command != "restorecon" && j.mounts.IsEmpty(path) && !j.empty {
		j.empty = true
		j.Note(path, "it is empty, and nothing is mounted there: is its volume mounted?")
	}
	j.Result(r)
	return code
}

// engine makes the options.
func (j *job) engine(t *report.Source) *relabel.Options {
	skips := map[string]relabel.Skip{"none": relabel.SkipNone, "root": relabel.SkipRoot, "top": relabel.SkipTop}
	links := map[string]relabel.HardLinks{"label": relabel.LinksLabel, "skip": relabel.LinksSkip, "error": relabel.LinksError}
	o := &relabel.Options{
		Workers:       int(j.threads),
		HardLinks:     links[j.hardLinks],
		Skip:          skips[j.trust],
		OneFilesystem: j.xdev,
		Sync:          j.sync,
		Exclude:       j.exclude,
		Trace: &relabel.Trace{
			Failure: t.Failed,
			Skip:    t.Skipped,
			Wait:    t.Waits,
			Stall:   t.Stalled,
			Note: func(text string) {
				lockless := strings.HasPrefix(text, "no lock was taken")
				if !lockless || !j.lockless { // that is said of one PATH
					t.Note(t.Root, text)
				}
				j.lockless = j.lockless || lockless
			},
		},
		Exact:  j.exact,
		NoSeal: j.noSeal,
	}
	if j.verbose > 0 {
		o.Trace.Change = t.Changed
	}
	return o
}

// aboutLink says that a PATH is a link, and was labelled itself.
func (j *job) aboutLink(path string, dry bool) {
	if !j.looked[path].isLink {
		return
	}
	text := "it is a symbolic link: only the link was labelled"
	if dry {
		text = "it is a symbolic link: only the link was looked at"
	}
	if j.looked[path].toDir {
		text += "; write " + words.Plain(path+"/") + " for the directory"
	}
	j.Note(path, text)
}

// resumption is the command line that resumes this run, for a shell:
// the same flags, and of the operands those that are left.
func resumption(name string, s *settings, operands, left []string) string {
	line := []string{name}
	if s.command != "" {
		line = append(line, s.command)
	}
	s.given.Visit(func(f *pflag.Flag) {
		for _, v := range valuesOf(f) {
			word := "--" + f.Name
			if v != f.NoOptDefVal {
				word += "=" + v
			}
			line = append(line, word)
		}
	})
	line = append(line, "--")
	undone := map[string]bool{}
	for _, l := range left {
		undone[l] = true
	}
	for _, o := range operands {
		if undone[o] {
			line = append(line, o)
		}
	}
	for i, w := range line {
		line[i] = words.Shell(w)
	}
	return strings.Join(line, " ")
}

// toResume stands before that line. A list that came through a pipe is gone.
func toResume(s *settings) string {
	switch {
	case s.filesFrom == "-":
		return "not done; to resume, with the same list again on stdin: "
	case strings.HasPrefix(s.filesFrom, "/dev/"):
		return "not done; to resume, with the same list again in " + words.Brief(s.filesFrom) + ": "
	}
	return "not done; to resume: "
}
