// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/containerd/nri/pkg/api"
	"github.com/containerd/nri/pkg/stub"

	"github.com/fastlabel/fastlabel/internal/mountinfo"
	"github.com/fastlabel/fastlabel/relabel"
)

// # Who owns what
//
// The runtime holds one lock for all pods of the node while RunPodSandbox answers. So
// that goroutine asks no file and no filesystem: it waits for a channel, until its time
// is up. A goroutine for each request looks at the sandbox and at the table of mounts;
// one for each of its volumes is a caller of the Group, which does the work. A look may
// hang for ever, and is not waited for longer; the callers leave at once.
//
// What a look finds is answered, however many requests come: it takes a millisecond, and
// 200 of them on a busy machine. How long a request waits for work it takes from an
// allowance, beside a moment of its own: a node on which many pods ask, and ask
// again, is not to spend its time on waiting for this plugin. While one look hangs others
// have no more time than that.
//
// What was rejected: to stop the work on StopPodSandbox or RemovePodSandbox. After an error
// CRI-O sends both for each try, and containerd none, nor when the pod is deleted, as no
// sandbox is left (containerd 2.4 sandbox_run.go, CRI-O nri-api.go).

// looksAtOnce bounds the requests whose look hangs: each keeps a thread.
const looksAtOnce = 64

// lookEach is the interval between two looks for pods that are being deleted.
const lookEach = time.Second

// plugin answers the runtime.
type plugin struct {
	allowed allowance
	places  places
	mounts  func() ([]mountinfo.Mount, error)
	group   relabel.Group
	looks   chan struct{} // a place for each that has not ended
	pods    pods
	log     *slog.Logger
	counts  *counts
	// tree is the Group's, but in tests.
	tree func(ctx context.Context, root, label string, s relabel.Skip) (relabel.Report, error)
}

func newPlugin(s settings, log *slog.Logger) *plugin {
	p := &plugin{
		allowed: allowance{most: s.wait, left: s.wait}, places: places{s.pods, s.bundles}, mounts: mountinfo.Read,
		looks: make(chan struct{}, looksAtOnce), log: log,
	}
	p.group.Linger, p.group.Limit, p.group.Trace, p.group.Ended = s.linger, s.volumes, p.trace, p.ended
	p.tree = p.group.Tree
	p.counts = newCounts(p.group.Pending, p.pods.waiting)
	return p
}

// trace logs what holds the run of a volume up or is skipped. Failures are counted in
// the error of the run, and the first are in it.
func (p *plugin) trace(root string) *relabel.Trace {
	t := relabel.LogTo(p.log, root)
	t.Failure = nil
	return t
}

// ended logs and counts a run.
func (p *plugin) ended(r relabel.Report, err error) {
	p.counts.run(r, err)
	p.log.Info("volume", "path", r.Root, "label", r.Label, "seen", r.Seen, "written", r.Written,
		"trusted", r.Trusted, "elapsed", r.Elapsed, "error", err)
}

// Configure is called when the plugin is connected to a runtime.
func (p *plugin) Configure(_ context.Context, _, runtime, version string) (stub.EventMask, error) {
	p.counts.connected.Set(1)
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
	p.counts.requests.WithLabelValues(string(outcome)).Inc()
	p.pods.answered(pod.GetUid(), outcome)
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
	found := make(chan answer, 1)
	go func() {
		a := p.look(pod, value)
		<-p.looks // first: the next request is not beside it
		found <- a
	}()
	least := p.allowed.most
	if len(p.looks) > 1 {
		least = free
	}
	a, in := await(ctx, &p.allowed, least, found)
	if !in {
		return goesOn, errors.New("config.json and the table of mounts are not read yet")
	}
	// Not by the look: one that is late would remember a pod that has started.
	switch {
	case a.outcome != labelled:
	case value == fixed && p.pods.changed(pod.GetUid(), a.label):
		a.outcome, a.err = drawn, errors.New("the level changes with each try")
	case len(a.volumes) == 0:
		a.outcome = noVolume
	}
	ctx, leave := context.WithCancel(ctx)
	defer leave()
	began, ended := time.Now(), make(chan done, len(a.volumes))
	for _, v := range a.volumes {
		go func() { ended <- done{v.name, p.do(ctx, v.path, a)} }()
	}
	var far []string
	for range a.volumes {
		d, in := await(ctx, &p.allowed, free-time.Since(began), ended)
		if !in {
			leave()
			d = <-ended // a caller of the Group leaves at once
		}
		if how, again := unfinished(d.err); again {
			far = append(far, d.name+": "+how)
		} else if d.err != nil {
			a.outcome, a.err = failed, fmt.Errorf("%s: %w", d.name, d.err)
		}
	}
	if len(far) > 0 {
		slices.Sort(far)
		return goesOn, fmt.Errorf("labelling goes on, and the pod starts when it is done: %s", strings.Join(far, "; "))
	}
	return a.outcome, a.err
}

// done is the answer of the Group for a volume.
type done struct {
	name string
	err  error
}

// unfinished reports whether the pod is to ask again, and how far the work is, for people.
func unfinished(err error) (how string, again bool) {
	var pending *relabel.PendingError
	switch {
	case errors.As(err, &pending):
		return pending.String(), true
	case errors.Is(err, relabel.ErrStopped):
		return "it was stopped, and the next try resumes", true
	case errors.As(err, new(*relabel.HungError)), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return "its filesystem has not answered yet", true
	}
	return "", false
}

// answer is the result of a look at the pod. It is given when do has returned for the volumes.
type answer struct {
	outcome
	err     error
	label   string
	volumes []volume
}

// look finds out what is to be labelled.
func (p *plugin) look(pod *api.PodSandbox, value string) answer {
	s, err := p.places.sandbox(pod.GetId())
	if err != nil {
		return answer{outcome: unreadable, err: err}
	}
	label, outcome, err := s.wants(value)
	if outcome != labelled {
		return answer{outcome: outcome, err: err}
	}
	all, err := p.places.volumes(pod.GetUid(), p.mounts)
	if err != nil {
		return answer{outcome: unreadable, err: err}
	}
	return answer{outcome: labelled, label: label, volumes: all}
}

// do has a volume labelled. What the pod began for a level that was drawn it stops: that must
// not write into a pod that runs.
func (p *plugin) do(ctx context.Context, path string, a answer) error {
	if a.outcome == labelled {
		_, err := p.tree(ctx, path, a.label, relabel.SkipRoot)
		return err
	}
	for _, w := range p.group.Pending() {
		if w.Root == path {
			return p.group.Stop(ctx, path)
		}
	}
	return nil
}

// releaseEach stops the work of pods that are being deleted, so that the kubelet can unmount
// their volumes, until ctx ends.
func (p *plugin) releaseEach(ctx context.Context) {
	var mounted map[string]int
	for tick := time.Tick(lookEach); ; {
		select {
		case <-tick:
			mounted = p.release(mounted)
		case <-ctx.Done():
			return
		}
	}
}

// release stops the work by the mount of a pod of which something was unmounted since before,
// which has how many mounts there were. The kubelet unmounts all volumes of a pod that is deleted
// at the same time, and most pods have one for their token: that at work it cannot unmount.
func (p *plugin) release(before map[string]int) (now map[string]int) {
	work := p.group.Pending()
	if len(work) == 0 {
		return nil
	}
	all, err := p.mounts()
	if err != nil {
		p.log.Warn("no table of mounts", "error", err)
		return before
	}
	now = make(map[string]int)
	for _, w := range work {
		now[w.Root] = len(mountinfo.Beneath(all, p.places.ofPod(w.Root)))
		if now[w.Root] >= before[w.Root] {
			continue
		}
		short, cancel := context.WithTimeout(context.Background(), grace)
		if err := p.group.Stop(short, w.Root); err != nil { // what was stopped stays so
			p.log.Warn("not stopped", "path", w.Root, "error", err)
		}
		cancel()
	}
	return now
}
