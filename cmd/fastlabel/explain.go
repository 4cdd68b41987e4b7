// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/exit"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/outlook"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/seclabel"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/site"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/wait"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/words"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/workload"
	"github.com/fastlabel/fastlabel/internal/secctx"
	"github.com/fastlabel/fastlabel/relabel"
)

// explanation is what explain has to say of one PATH. All of it is certain: it is
// read from PATH and the mount table, and nothing beneath PATH is looked at.
type explanation struct {
	site.Site
	want   string         // the label that is asked for
	from   string         // what asks for it
	root   relabel.Status // what PATH says of itself
	pods   workload.Pods
	future outlook.Volume
}

// explainAll explains each path.
func (j *job) explainAll(ctx context.Context, pods workload.Pods, paths []string) int {
	codes := make([]int, len(paths))
	wait.InTurn(len(paths), func(i int, stalls func()) {
		if codes[i] = j.late(ctx, paths[i]); codes[i] == exit.Done {
			var e explanation
			e, codes[i] = inTime(ctx, j, paths[i], wait.Patience, stalls, func() (explanation, error) { return j.study(pods, paths[i]) })
			if codes[i] == exit.Done {
				j.Explained(e.text(os.Geteuid() != 0), e.object())
			}
		}
	})
	return exit.Worst(codes)
}

// study finds out what is to be said.
func (j *job) study(pods workload.Pods, path string) (explanation, error) {
	v, err := site.Look(path)
	e := explanation{Site: v, pods: pods}
	if err != nil {
		return e, err
	}
	e.want, e.from = j.wanted(v, pods)
	e.root, err = j.inspect(path, e.want, relabel.TrustRoot)
	refused := err == nil && j.refuses(path, e.want)
	if err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return e, err
	}
	e.foresee(refused)
	return e, nil
}

// refuses tells whether the library relabels path at all: a check that was over
// before it began gets as far as that.
func (j *job) refuses(path, label string) bool {
	over, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := j.tree(over, path, label, nil, true)
	return errors.Is(err, relabel.ErrRefused)
}

// wanted is the label to explain, and what asks for it.
func (j *job) wanted(v site.Site, pods workload.Pods) (label, from string) {
	compose := func(user, level string) string {
		label, err := secctx.Compose(j.label, user, "", "", level)
		if err != nil { // its parts were taken from labels
			return j.label
		}
		return label
	}
	for _, c := range pods.Containers {
		if c.Level != "" {
			return compose(c.User, c.Level), fmt.Sprintf("%s, container %s", c.Pod, c.Name)
		}
	}
	if j.settings.label != "" || j.reference != "" || j.level != "" {
		return j.label, "the flags"
	}
	// Of what a relabel left, the level counts, and not the seal's user.
	if level := seclabel.Level(v.Label); seclabel.Type(v.Label) == seclabel.Type(j.label) && !strings.Contains(level, "-") {
		if label, err := secctx.Compose(j.label, "", "", "", level); err == nil {
			return label, "the level of PATH"
		}
	}
	return j.label, "the default"
}

// foresee tells what runtimes will do.
func (e *explanation) foresee(refused bool) {
	f := outlook.Volume{
		NoLabels: e.Mount.NoLabels, Refused: refused, ReadOnly: e.Mount.ReadOnly, Off: !e.SELinux, Plugin: e.Plugin(), Right: e.root.Labelled,
		Vouched: e.root.Labelled && e.root.Commit.Label == e.want, Shared: seclabel.Level(e.want) == "s0",
	}
	labels := map[string]bool{}
	var byCRIO []string
	for _, c := range e.pods.Containers {
		if c.LeftByCRIO != "" {
			byCRIO = append(byCRIO, c.LeftByCRIO)
		}
		labels[c.User+":"+c.Level] = true
		f.ContainerdDraws = f.ContainerdDraws || c.ContainerdDraws
	}
	if n := len(e.pods.Containers); n > 0 {
		if len(byCRIO) == n {
			f.LeftByCRIO = byCRIO[0]
		}
		f.Unasked = !slices.ContainsFunc(e.pods.Containers, func(c workload.Container) bool { return c.TrySkip })
		f.Recursive = slices.ContainsFunc(e.pods.Containers, func(c workload.Container) bool { return c.Recursive })
		f.Differ = len(labels) > 1
		f.Drawn = !slices.ContainsFunc(e.pods.Containers, func(c workload.Container) bool { return c.Level != "" })
		f.Right = f.Right && !f.Drawn && !f.Differ
	}
	e.future = f
}

// toLabel is the command that labels PATH, "" where that is done or of no use.
func (e explanation) toLabel() string {
	if e.root.Labelled || !e.future.Labels() {
		return ""
	}
	flags := "--label " + e.want
	if level, is := strings.CutPrefix(e.want, strings.TrimSuffix(seclabel.Default, "s0")); is {
		flags = "-l " + level
	}
	return "fastlabel " + flags + " -- " + words.Shell(e.Path)
}

const explainHelp = `Nothing is written, and nothing beneath PATH is read. It tells whether files
there have labels, which label PATH has and what vouches for it, what CRI-O,
containerd and podman will do with PATH and why, and what to write.

Without --for and the flags of the label, the label is the default with the
level of PATH, if the types agree. --for reads pods, and what holds templates
of them, as kubectl get -o json prints them.

Exit codes: 0 explained; 1 something failed; 2 usage; 124 --timeout reached;
130 interrupted (143: SIGTERM).
`

func explainCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "explain [flags] PATH...",
		GroupID: onRuntimes,
		Short:   "what runtimes do there, and why",
		Long:    explainHelp + inJSON,
		Example: "  fastlabel explain --for pod.json /var/lib/pv\n",
	}
}
