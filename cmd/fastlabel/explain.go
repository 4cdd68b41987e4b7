// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/outlook"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/stanza"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/survey"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/workload"
	"github.com/fastlabel/fastlabel/relabel"
)

// What a sample is at most: less than an operator waits for, and more entries
// than most volumes have.
const (
	surveyTime    = 2 * time.Second
	surveyEntries = 200_000
)

// explanation is what explain has to say of one PATH.
type explanation struct {
	site
	want     string // the label that is asked for
	from     string // who asks for it
	labelled bool   // PATH bears it
	sealed   bool   // a relabel to it was interrupted
	commit   relabel.Commit
	pods     workload.Pods
	future   outlook.Volume
	counted  string // where the number of entries is from
	help     outlook.Help
	reasons  []string
	stanza   string // all that is to be printed, if not ""
}

// explainAll explains each path.
func (j *job) explainAll(ctx context.Context, pods workload.Pods, paths []string) int {
	codes := make([]int, len(paths))
	inTurn(len(paths), func(i int, stalls func()) {
		if codes[i] = j.late(ctx, paths[i]); codes[i] == exitDone {
			codes[i] = j.explain(ctx, pods, paths[i], stalls)
		}
	}, func() {})
	return worstOf(codes)
}

func (j *job) explain(ctx context.Context, pods workload.Pods, path string, stalls func()) int {
	limits, wait := &survey.Limits{Time: surveyTime, Entries: surveyEntries}, surveyTime+patience
	switch {
	case j.printsStanza():
		limits, wait = nil, patience
	case j.whole:
		limits, wait = &survey.Limits{}, 0
	}
	e, code := inTime(ctx, j, path, wait, stalls, func() (explanation, error) { return j.study(ctx, pods, path, limits) })
	if code != exitDone {
		return code
	}
	var err error
	if e.stanza, err = j.stanza(e); err != nil {
		j.failure(path, fmt.Errorf("no stanza for %s: %w", j.output, err))
		return exitRefused
	}
	j.explained(e)
	if ctx.Err() != nil { // what was read until then is a sample too
		code, _ = endOf(ctx)
	}
	return code
}

// printsStanza says that --output asks for what to write, and for nothing else.
func (s *settings) printsStanza() bool {
	return slices.Contains([]string{"crio", "podman", "kubernetes"}, s.output)
}

// stanza is what --output asks for; "" for an explanation.
func (j *job) stanza(e explanation) (string, error) {
	switch j.output {
	case "crio":
		return stanza.CRIO(), nil
	case "kubernetes":
		return stanza.Kubernetes(e.want)
	case "podman":
		path, err := filepath.Abs(e.path)
		if err != nil {
			return "", err
		}
		return stanza.Podman(e.want, path, forShell)
	}
	return "", nil
}

// study finds out what is to be said.
func (j *job) study(ctx context.Context, pods workload.Pods, path string, limits *survey.Limits) (explanation, error) {
	v, err := lookAt(ctx, path, limits)
	e := explanation{site: v, pods: pods}
	if err != nil {
		return e, err
	}
	e.want, e.from = j.wanted(v, pods)
	e.labelled, err = j.labelled(path, e.want, relabel.Root)
	refused := err == nil && j.refuses(path, e.want)
	if err == nil {
		if e.sealed, err = j.sealed(path, e.want); err == nil {
			e.commit, err = j.commit(path)
		}
	}
	if err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return e, err
	}
	e.foresee(refused)
	return e, nil
}

// refuses tells whether the library relabels path at all: a dry run that was over
// before it began gets as far as that.
func (j *job) refuses(path, label string) bool {
	over, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := j.tree(over, path, label, relabel.Options{DryRun: true})
	return errors.Is(err, relabel.ErrRefused)
}

// wanted is the label to explain, and who asks for it.
func (j *job) wanted(v site, pods workload.Pods) (label, from string) {
	compose := func(user, level string) string {
		label, err := relabel.Compose(j.label, user, "", "", level)
		if err != nil { // its parts were taken from labels
			return j.label
		}
		return label
	}
	for _, c := range pods.Containers {
		if c.Level != "" && c.Left == "" {
			return compose(c.User, c.Level), fmt.Sprintf("%s, container %s", c.Pod, c.Name)
		}
	}
	if j.settings.label != "" || j.reference != "" || j.level != "" {
		return j.label, "the flags"
	}
	// Of what a relabel left, the level counts, and not the seal's user.
	if level := levelOf(v.label); typeOf(v.label) == typeOf(j.label) && !strings.Contains(level, "-") {
		if label, err := relabel.Compose(j.label, "", "", "", level); err == nil {
			return label, "the level of PATH"
		}
	}
	return j.label, "the default"
}

// foresee tells what runtimes will do.
func (e *explanation) foresee(refused bool) {
	f := outlook.Volume{
		NoLabels: e.mount.noLabels, Refused: refused, Right: e.labelled, Off: !e.selinux, Plugin: e.plugin(),
		Shared: levelOf(e.want) == "s0",
		Least:  e.sample.Least, Most: e.sample.Most, Each: e.sample.Each.Seconds(),
	}
	for _, c := range e.sample.Labels {
		if c.Label != e.want {
			f.Strays += c.Top + c.Beneath
		}
	}
	f.Strays += e.sample.Others
	e.counted = "estimated from the sample"
	switch {
	case e.sample.Counted:
		e.counted = "counted"
	case e.commit.Entries >= f.Least:
		// The volume may have grown since, or shrunk.
		f.Least, f.Most, e.counted = max(f.Least, e.commit.Entries/2), 2*e.commit.Entries, "the last run met "+thousands(e.commit.Entries)
	case e.inodes >= f.Least:
		f.Least, f.Most, e.counted = e.inodes, e.inodes, "inodes in use"
	case f.Most == 0:
		e.counted = "so many were seen"
	}
	labels := map[string]bool{}
	var left, byCRIO []string
	for _, c := range e.pods.Containers {
		if c.LeftByCRIO != "" {
			byCRIO = append(byCRIO, c.LeftByCRIO)
		}
		if c.Left != "" {
			left = append(left, c.Left)
			continue
		}
		labels[c.User+":"+c.Level] = true
		f.ContainerdDraws = f.ContainerdDraws || c.ContainerdDraws
	}
	if n := len(e.pods.Containers); n > 0 {
		if len(left) == n {
			f.Left = left[0]
		}
		if len(byCRIO) == n {
			f.LeftByCRIO = byCRIO[0]
		}
		f.Unasked = !slices.ContainsFunc(e.pods.Containers, func(c workload.Container) bool { return c.TrySkip })
		f.Recursive = slices.ContainsFunc(e.pods.Containers, func(c workload.Container) bool { return c.Recursive })
		f.Differ = len(labels) > 1
		f.Drawn = len(left) < n && !slices.ContainsFunc(e.pods.Containers, func(c workload.Container) bool { return c.Left == "" && c.Level != "" })
		f.Right = f.Right && !f.Drawn && !f.Differ
	}
	e.future = f
	e.help, e.reasons = f.Verdict()
}
