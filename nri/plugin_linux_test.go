// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/containerd/nri/pkg/api"

	"github.com/fastlabel/fastlabel/internal/mountinfo"
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
	if walk, queued := plug.labeller.states(); walk != 1 || queued != 0 || has(t, vol, newLabel) == entries {
		t.Errorf("%d at work, %d wait, %d are labelled", walk, queued, has(t, vol, newLabel))
	}
	g.release()
	for _, p := range all {
		n.starts(p)
	}
	n.starts(all[0])
	if plug.counts.of(labelled) != int64(len(all)+1) {
		t.Errorf("%v", plug.counts.requests)
	}
	g.oneWalk(t, has(t, vol, newLabel))
}

// TestWait: by a clock that only the plugin moves, the answer comes after --wait, whether
// it is the work that takes longer or the look at the sandbox.
func TestWait(t *testing.T) {
	n := newNode(t)
	p := n.pod("a", itsLevel)
	at := p.mount(n.volume("v"), localPV)
	id := p.sandbox()
	request := &api.PodSandbox{Id: id, Uid: p.uid, Annotations: p.annotations}
	synctest.Test(t, func(t *testing.T) {
		l := newLabeller(1, time.Hour, slog.New(slog.DiscardHandler), new(counts))
		plug := newPlugin(200*time.Millisecond, places{n.in("pods"), []string{n.in("bundles", "{id}")}}, l)
		all, err := plug.places.volumes(p.uid, mountinfo.Read)
		if err != nil || len(all) != 1 || all[0].path != at {
			t.Fatalf("%+v, %v", all, err)
		}
		busy := l.held(all[0])
		let := make(chan struct{})
		for _, hangs := range []bool{false, true} {
			if hangs {
				l.mounts = func() ([]mountinfo.Mount, error) { <-let; return mountinfo.Read() }
			}
			time.Sleep(time.Minute) // there is all of its time
			began := time.Now()
			err := plug.RunPodSandbox(t.Context(), request)
			if took := time.Since(began); err == nil || took != plug.allowed.most {
				t.Errorf("the look hangs %v: %v after %v", hangs, err, took)
			}
			if hangs {
				began = time.Now()
				err = plug.RunPodSandbox(t.Context(), request)
				if took := time.Since(began); err == nil || took < free || took > plug.allowed.most/2 {
					t.Errorf("beside a look that hangs: %v after %v", err, took)
				}
				close(let)
			}
			synctest.Wait()
			if busy.waiting != 0 {
				t.Errorf("%d requests wait that were answered", busy.waiting)
			}
		}
	})
}

// held makes a job for a volume that does not end.
func (l *labeller) held(v volume) *job {
	j := &job{volume: v, label: newLabel, since: time.Now(), step: "busy", done: make(chan struct{}), unasked: time.NewTimer(time.Hour)}
	l.jobs[key{v.device, v.root, newLabel}] = j
	return j
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

// TestNothingToDo: by that clock, many pods whose volumes have the label are answered at
// once while the allowance is used up for another volume, however slow the look is at what
// they have. A volume that is new has a moment, once, also if it never answers.
func TestNothingToDo(t *testing.T) {
	n := newNode(t)
	const pods, slow = 50, 150 * time.Millisecond
	done := n.volume("done")
	treetest.Label(t, done, newLabel)
	request := func(p *pod) *api.PodSandbox {
		return &api.PodSandbox{Id: p.sandbox(), Uid: p.uid, Annotations: p.annotations}
	}
	var right []*api.PodSandbox
	for i := range 2 * pods {
		p, vol := n.pod(fmt.Sprintf("pod-%d", i), itsLevel), done
		if i%2 == 1 {
			vol = n.volume(p.uid)
			treetest.Label(t, vol, newLabel)
		}
		p.mount(vol, localPV)
		right = append(right, request(p))
	}
	var busy []*api.PodSandbox
	for _, name := range []string{"work", "new"} {
		p := n.pod(name, itsLevel)
		p.mount(n.volume(name), localPV)
		busy = append(busy, request(p))
	}
	synctest.Test(t, func(t *testing.T) {
		l := newLabeller(1, time.Hour, slog.New(slog.DiscardHandler), new(counts))
		plug := newPlugin(200*time.Millisecond, places{n.in("pods"), []string{n.in("bundles", "{id}")}}, l)
		hold := func(r *api.PodSandbox) {
			all, err := plug.places.volumes(r.Uid, mountinfo.Read)
			if err != nil || len(all) != 1 {
				t.Fatalf("%+v, %v", all, err)
			}
			l.held(all[0])
		}
		ask := func(r *api.PodSandbox, starts bool) time.Duration {
			began := time.Now()
			if err := plug.RunPodSandbox(t.Context(), r); (err == nil) != starts {
				t.Errorf("pod %s: %v", r.Uid, err)
			}
			return time.Since(began)
		}
		hold(busy[0])
		if took := ask(busy[0], false); took != plug.allowed.most {
			t.Errorf("the first request for the work takes %v", took)
		}
		l.mounts = func() ([]mountinfo.Mount, error) { time.Sleep(slow); return mountinfo.Read() }
		for _, r := range right {
			if took := ask(r, true); took != slow {
				t.Errorf("pod %s is answered after %v", r.Uid, took)
			}
			ask(busy[0], false)
		}
		l.mounts = mountinfo.Read
		hold(busy[1])
		if took := ask(busy[1], false); took < free || took > 2*free {
			t.Errorf("the first request for a new volume takes %v", took)
		}
		if took := ask(busy[1], false); took >= free {
			t.Errorf("the second takes %v", took)
		}
		synctest.Wait()
	})
}
