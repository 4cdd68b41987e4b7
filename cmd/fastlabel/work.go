// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"io/fs"

	"github.com/fastlabel/fastlabel/relabel"
)

// job is a run over all PATHs: of label, verify or probe.
type job struct {
	app
	*settings
	reporter
	command string
	label   string // canonical
}

// labelAll labels the paths, or for verify and -n reads them. One that another
// takes in is done with it: after it, and by itself if the other was not
// walked after all.
func (j *job) labelAll(ctx context.Context, paths []string) int {
	roots := cover(paths, j.settings)
	walked := make([]bool, len(roots))
	worst := exitDone
	for _, covered := range []bool{false, true} {
		for i, r := range roots {
			if covered != (r.cover >= 0) {
				continue
			}
			by := r.cover
			for by >= 0 && roots[by].cover >= 0 { // a twin of one that lies in a third
				by = roots[by].cover
			}
			if covered && walked[by] {
				if j.verbose || j.json {
					j.skip(r.path, r.path, "done with "+plain(roots[by].path))
				}
				continue
			}
			var code int
			code, walked[i] = j.one(ctx, r.path)
			worst = worse(worst, code)
		}
	}
	return worst
}

// one does one PATH, and tells whether it was walked to the end.
func (j *job) one(ctx context.Context, path string) (code int, walked bool) {
	if ctx.Err() != nil {
		code, reason := endOf(ctx)
		j.result(result{Report: relabel.Report{Root: path, Label: j.label}, command: j.command, code: code, reason: reason})
		return code, false
	}
	dry := j.dryRun || j.command == "verify"
	t := &teller{reporter: j.reporter, root: path, label: j.label, told: map[string]bool{}}
	rep, err := j.tree(ctx, path, j.label, j.engine(t, dry))
	rep.Root, rep.Label = path, j.label
	t.end(ctx, err)
	code, reason := outcome(ctx, rep, err, dry)
	j.result(result{
		Report: rep, command: j.command, skip: j.trust, dryRun: dry,
		begun: true, code: code, reason: reason,
	})
	return code, rep.Seen > 0 && (code == exitDone || code == exitDiffers || code == exitFailed)
}

// engine makes the options.
func (j *job) engine(t *teller, dry bool) relabel.Options {
	skips := map[string]relabel.Skip{"none": relabel.SkipNone, "root": relabel.SkipRoot, "top": relabel.SkipTop}
	links := map[string]relabel.HardLinks{"label": relabel.LinksLabel, "skip": relabel.LinksSkip, "error": relabel.LinksError}
	o := relabel.Options{
		Threads:       j.threads,
		HardLinks:     links[j.hardLinks],
		Skip:          skips[j.trust],
		Exact:         j.exact,
		DryRun:        dry,
		OneFilesystem: j.xdev,
		Exclude:       j.exclude,
		NoSeal:        j.noSeal,
		NoSync:        j.noSync,
		OnFailure:     t.failed,
		OnSkip:        func(p, reason string) { t.say(func() { t.skip(t.root, p, reason) }) },
		OnNote:        func(text string) { t.say(func() { t.note(t.root, text) }) },
		OnWait:        func(holder string) { t.say(func() { t.wait(t.root, holder) }) },
	}
	if j.verbose || j.logLevel == "debug" {
		o.OnChange = func(p, from string) { t.say(func() { t.change(t.root, p, from, t.label) }) }
	}
	return o
}

// probeAll asks each path whether it bears the label.
func (j *job) probeAll(ctx context.Context, paths []string) int {
	depth := relabel.Root
	if j.depth == "top" {
		depth = relabel.Top
	}
	worst := exitDone
	for _, path := range paths {
		if ctx.Err() != nil {
			code, reason := endOf(ctx)
			j.note(path, "not begun ("+reason+")")
			worst = worse(worst, code)
			continue
		}
		r := probeResult{root: path, label: j.label, depth: j.depth}
		var err error
		if r.labelled, err = j.labelled(path, j.label, depth); err == nil && !r.labelled {
			r.interrupted, err = j.sealed(path, j.label)
		}
		switch {
		case err != nil:
			j.failure(path, err)
			worst = worse(worst, codeOf(err))
			continue
		case !r.labelled:
			worst = worse(worst, exitDiffers)
		}
		j.probed(r)
	}
	return worst
}

// codeOf is the code for an error that has no report.
func codeOf(err error) int {
	var usage usageError
	switch {
	case errors.As(err, &usage):
		return exitUsage
	case errors.Is(err, fs.ErrNotExist):
		return exitFailed
	case errors.Is(err, relabel.ErrRefused), errors.Is(err, errors.ErrUnsupported):
		return exitRefused
	}
	return exitFailed
}
