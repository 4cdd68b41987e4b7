// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/containerd/nri/pkg/api"
	"github.com/containerd/nri/pkg/stub"

	"github.com/fastlabel/fastlabel/relabel"
)

// # Who owns what
//
// The runtime holds one lock for all pods of the node while RunPodSandbox answers. So
// that goroutine asks no file and no filesystem: it waits for a channel, until its time
// is up. A goroutine for each request looks at the sandbox and at the table of mounts;
// one for each volume, of labeller, does the work. Either may hang for ever, and
// neither is waited for longer.
//
// What a look finds is answered, however many requests come: it takes a millisecond, and
// 200 of them on a busy machine. How long a request waits for work it takes from an
// allowance, beside a moment for each volume: a node on which many pods ask, and ask
// again, is not to spend its time on waiting for this plugin. While one look hangs others
// have no more time than that.
//
// What was rejected: to give the request's context to the work. The work is to outlive
// it, and the answer must not depend on whether the work notices its end. And to stop the
// work on StopPodSandbox or RemovePodSandbox. After an error CRI-O sends both for each
// try, and containerd none, nor when the pod is deleted, as no sandbox is left
// (containerd 2.4 sandbox_run.go, CRI-O nri-api.go).

// looksAtOnce bounds the requests whose look hangs: each keeps a thread.
const looksAtOnce = 64

// plugin answers the runtime.
type plugin struct {
	allowed  allowance
	places   places
	labeller *labeller
	looks    chan struct{} // a place for each that has not ended
	drawn    levels
	log      *slog.Logger
	counts   *counts
}

func newPlugin(wait time.Duration, at places, l *labeller) *plugin {
	return &plugin{allowed: allowance{most: wait, left: wait}, places: at, labeller: l, looks: make(chan struct{}, looksAtOnce), log: l.log, counts: l.counts}
}

// Configure is called when the plugin is connected to a runtime.
func (p *plugin) Configure(_ context.Context, _, runtime, version string) (stub.EventMask, error) {
	p.counts.connected.Store(true)
	p.log.Info("connected", "runtime", runtime, "version", version)
	return 0, nil
}

// RunPodSandbox has the pod's volumes labelled. An error makes the runtime give the
// sandbox up, and the kubelet tries again; its text is in the pod's events.
func (p *plugin) RunPodSandbox(ctx context.Context, pod *api.PodSandbox) error {
	value, asks := pod.GetAnnotations()[annotation]
	if !asks || value == "false" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, p.allowed.most)
	defer cancel()
	outcome, err := p.label(ctx, pod, value)
	p.counts.request(outcome)
	p.log.Info("RunPodSandbox", "namespace", pod.GetNamespace(), "pod", pod.GetName(), "uid", pod.GetUid(),
		"outcome", string(outcome), "error", err)
	if outcome == goesOn || outcome == mistyped {
		// As text: the runtime takes an error that is a deadline for a plugin that hangs.
		return errors.New("fastlabel: " + oneLine(err.Error()))
	}
	return nil
}

// longest bounds the text of an event: the kubelet cuts it at 1,024 bytes, with what the
// runtime says before.
const longest = 512

// oneLine is text without what a terminal or a decoder would stumble over: names of
// volumes and files are in it.
func oneLine(text string) string {
	text = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return utf8.RuneError
		}
		return r
	}, text)
	if len(text) <= longest {
		return text
	}
	cut := longest
	for !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + "…"
}

// label returns when the volumes have the label, when it is clear that they will not get
// it here, or when ctx or the allowance ends.
func (p *plugin) label(ctx context.Context, pod *api.PodSandbox, value string) (outcome, error) {
	select {
	case p.looks <- struct{}{}:
	default:
		return goesOn, fmt.Errorf("%d earlier requests still wait for config.json or for the table of mounts", looksAtOnce)
	}
	found := make(chan answer)
	go func() {
		a := p.look(pod, value)
		<-p.looks
		select {
		case found <- a:
		case <-ctx.Done():
			p.labeller.leave(a.jobs)
		}
	}()
	looks := p.allowed.most
	if len(p.looks) > 1 {
		looks = free
	}
	a, in := await(ctx, &p.allowed, looks, found)
	if !in {
		return goesOn, errors.New("config.json and the table of mounts are not read yet")
	}
	defer p.labeller.leave(a.jobs)
	for _, j := range a.jobs {
		if _, in := await(ctx, &p.allowed, free-time.Since(j.since), j.done); !in {
			return goesOn, p.labeller.farOf(a.jobs)
		}
	}
	if a.outcome == drawn {
		return a.outcome, a.err
	}
	for _, j := range a.jobs {
		switch {
		case errors.As(j.err, new(*relabel.HungError)), errors.Is(j.err, relabel.ErrStopped):
			return goesOn, fmt.Errorf("%s: %w; the next try resumes", j.name, j.err)
		case j.err != nil:
			a.outcome, a.err = failed, fmt.Errorf("%s: %w", j.name, j.err)
		}
	}
	return a.outcome, a.err
}

// answer is the result of a look at the pod. It is given when the jobs have ended.
type answer struct {
	outcome
	err  error
	jobs []*job
}

// look finds out what is to be labelled, and joins the jobs or begins them.
func (p *plugin) look(pod *api.PodSandbox, value string) answer {
	s, err := p.places.sandbox(pod.GetId())
	if err != nil {
		return answer{outcome: unreadable, err: err}
	}
	label, outcome, err := s.wants(value)
	if outcome != labelled {
		return answer{outcome: outcome, err: err}
	}
	changed := value == fixed && p.drawn.changed(pod.GetUid(), label)
	all, err := p.places.volumes(pod.GetUid(), p.labeller.mounts)
	switch {
	case err != nil:
		return answer{outcome: unreadable, err: err}
	case changed: // what was begun for the level before must not write into a pod that runs
		return answer{outcome: drawn, err: errors.New("the level changes with each try"), jobs: p.labeller.abandon(all)}
	case len(all) == 0:
		return answer{outcome: noVolume}
	}
	a := answer{outcome: labelled}
	for _, v := range all {
		a.jobs = append(a.jobs, p.labeller.join(v, label))
	}
	return a
}
