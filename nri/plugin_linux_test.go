// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/containerd/nri/pkg/api"

	"github.com/fastlabel/fastlabel/internal/mountinfo"
	"github.com/fastlabel/fastlabel/relabel"
	"github.com/fastlabel/fastlabel/test/treetest"
)

// soon is a wait that no test has to sit out often. What is asserted does not depend on
// it: the work is held up for as long as the test wants.
const soon = 20 * time.Millisecond

// oneWalk: each entry was written once.
func (g *gate) oneWalk(t *testing.T, labelled int) {
	t.Helper()
	g.mu.Lock()
	defer g.mu.Unlock()
	for path, times := range g.wrote {
		if times != 1 {
			t.Errorf("%s was written %d times", path, times)
		}
	}
	if len(g.wrote) != entries || labelled != entries {
		t.Errorf("%d written, %d of %d labelled", len(g.wrote), labelled, entries)
	}
}

// TestTwentyPods: each has a mount of its own of one volume, by two ways. While the work is
// held up each request is answered, with how far it is; the one after it has ended gets its
// result. There is one walk.
func TestTwentyPods(t *testing.T) {
	n, g := newNode(t), newGate()
	n.start()
	plug := n.plug(time.Millisecond, 4, g)
	vol := n.volume("v")
	var all []*pod
	for i := range 20 {
		p := n.pod(fmt.Sprintf("pod-%d", i), []string{"s0:c20,c10", fixed}[i%2])
		p.mount(vol, []string{localPV, "kubernetes.io~csi/pv/mount"}[i%2])
		all = append(all, p)
		if err := n.ask(p); err == nil {
			t.Errorf("pod %d does not wait", i)
		}
	}
	treetest.Wait(t, "the walk", g.reached)
	n.goesOn(all[0], "pv: ")
	plug.counts.have(t, map[string]float64{"runs": 1, "runs_waiting": 0, "waiting_sandboxes": 20, "connected": 1})
	g.release()
	for _, p := range all {
		n.starts(p)
	}
	n.starts(all[0])
	if len(plug.pods.last) != 0 {
		t.Errorf("%d pods are remembered", len(plug.pods.last))
	}
	plug.counts.have(t, map[string]float64{
		"runs": 0, "waiting_sandboxes": 0, `requests_total{outcome="labelled"}`: 21, `runs_total{result="labelled"}`: 1,
		`entries_total{outcome="written"}`: entries, "walk_seconds_count": 1,
	})
	g.oneWalk(t, has(t, vol, newLabel))
}

// TestWait: by a clock that only the plugin moves. The answer comes after --wait, whether the work takes
// longer or the look at the sandbox. Pods whose volumes have the label are answered as soon as the
// look has ended, while other pods use all of the allowance; these have a moment for each request.
// A look that ends after its pod has started remembers nothing of it.
func TestWait(t *testing.T) {
	n := newNode(t)
	const slow = 150 * time.Millisecond
	request := func(name string) *api.PodSandbox {
		p := n.pod(name, itsLevel)
		p.mount(n.volume(name), localPV)
		return &api.PodSandbox{Id: p.sandbox(), Uid: p.uid, Annotations: p.annotations}
	}
	busy, right := request("busy"), request("right")
	right.Annotations = map[string]string{annotation: fixed}
	synctest.Test(t, func(t *testing.T) {
		plug := newPlugin(n.settings(200*time.Millisecond, 1), slog.New(slog.DiscardHandler))
		plug.tree = func(ctx context.Context, root, _ string, _ relabel.Skip) (none relabel.Report, err error) {
			if strings.Contains(root, "right") {
				return none, nil
			}
			<-ctx.Done()
			return none, &relabel.PendingError{Work: relabel.Work{Entries: 7}, Cause: ctx.Err()}
		}
		ask := func(r *api.PodSandbox) (took time.Duration) {
			began := time.Now()
			if err := plug.RunPodSandbox(t.Context(), r); (err == nil) != (r == right) {
				t.Errorf("pod %s: %v", r.Uid, err)
			}
			return time.Since(began)
		}
		if took := ask(busy); took != plug.allowed.most {
			t.Errorf("the first request for the work takes %v", took)
		}
		plug.mounts = func() ([]mountinfo.Mount, error) { time.Sleep(slow); return mountinfo.Read() }
		for range 50 {
			if took := ask(right); took != slow {
				t.Errorf("with nothing to do the answer comes after %v", took)
			}
			if took := ask(busy); took < slow+free || took > plug.allowed.most {
				t.Errorf("without an allowance the answer comes after %v", took)
			}
		}
		let := make(chan struct{})
		plug.mounts = func() ([]mountinfo.Mount, error) { <-let; return mountinfo.Read() }
		time.Sleep(time.Minute) // there is all of the allowance
		if took := ask(busy); took != plug.allowed.most {
			t.Errorf("the look hangs: an answer after %v", took)
		}
		if took := ask(busy); took < free || took > plug.allowed.most/2 {
			t.Errorf("beside a look that hangs: an answer after %v", took)
		}
		if plug.RunPodSandbox(t.Context(), right) == nil {
			t.Error("pod right starts though its look hangs")
		}
		synctest.Wait()
		if m := plug.pods.last[right.GetUid()]; m == nil || m.label != "" {
			t.Errorf("a look that has not ended remembers %+v", m)
		}
		plug.mounts = mountinfo.Read
		ask(right)
		close(let)
		synctest.Wait()
		if len(plug.looks) != 0 || plug.pods.waiting() != 1 || len(plug.pods.last) != 1 {
			t.Errorf("%d looks are left, %d pods wait, %d are remembered", len(plug.looks), plug.pods.waiting(), len(plug.pods.last))
		}
	})
}

// TestAllowance: by that clock, however many requests come, one after the other, their
// waits are a small part of the time, beside what is free; after a pause there is all of
// it again. What is there is received though there is no time.
func TestAllowance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := allowance{most: 200 * time.Millisecond}
		wait := func(beside time.Duration) time.Duration {
			began := time.Now()
			if _, in := await(t.Context(), &a, beside, make(chan int)); in {
				t.Error("something came")
			}
			return time.Since(began)
		}
		came := make(chan int)
		close(came)
		for _, pause := range []time.Duration{0, 10 * time.Millisecond, 100 * time.Millisecond, time.Second} {
			time.Sleep(time.Minute)
			if first := wait(-time.Hour); first != a.most {
				t.Errorf("the first waits %v", first)
			}
			if next := wait(0); next != a.most/share {
				t.Errorf("the next waits %v", next)
			}
			if _, in := await(t.Context(), &a, 0, came); !in {
				t.Error("what is there is not received")
			}
			var waited time.Duration
			const requests = 1000
			began := time.Now()
			for i := range requests {
				time.Sleep(pause)
				waited += wait(time.Duration(i%2) * free)
			}
			if most := time.Since(began)/share + requests/2*free; waited > most {
				t.Errorf("pauses of %v: %v of %v, more than %v", pause, waited, time.Since(began), most)
			}
		}
		time.Sleep(time.Minute)
		for range 1000 {
			_, _ = await(t.Context(), &a, 0, came)
		}
		if got := wait(0); got != a.most {
			t.Errorf("after requests that did not wait: %v", got)
		}
	})
}
