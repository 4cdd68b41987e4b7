// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"github.com/spf13/cobra"

	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/exit"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/report"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/wait"
	"github.com/fastlabel/fastlabel/relabel"
)

func probeCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "probe [flags] PATH...",
		Short:   "is it labelled? reads PATH alone",
		Long:    ownLevel + inJSON,
		Example: "  fastlabel probe -l s0:c35,c75 /var/lib/pv\n",
	}
}

// probe asks one path. The call may be left behind where the filesystem does not answer.
// If it takes long, that is reported.
func (j *job) probe(ctx context.Context, path string) int {
	slow := time.AfterFunc(wait.Patience, func() { j.Stall(path, relabel.HungCall{Path: path}) })
	late, cancel := wait.Linger(ctx, wait.Grace)
	defer cancel()
	r, err := wait.Within(late, func() (report.Probe, error) { return j.ask(path) })
	slow.Stop()
	switch {
	case err != nil && late.Err() != nil:
		j.Failure(path, &fs.PathError{Path: path, Err: errors.New("the filesystem does not answer")})
		code, _ := exit.Of(ctx)
		return code
	case err != nil:
		j.Failure(path, err)
		return exit.Code(err, exit.Failed)
	}
	j.aboutLink(path, true)
	j.Put(report.Event{Kind: report.Status, Root: path, Probe: &r})
	if !r.Labelled {
		return exit.Differs
	}
	return exit.Done
}

func (j *job) ask(path string) (report.Probe, error) {
	skip := relabel.SkipRoot
	if j.depth == "top" {
		skip = relabel.SkipTop
	}
	root, err := j.inspect(path, j.label, skip)
	r := report.Probe{Root: path, Label: j.label, Depth: j.depth, Labelled: root.Labelled}
	if !root.Labelled {
		r.Interrupted, r.Has = root.Interrupted, root.Label
	}
	return r, err
}
