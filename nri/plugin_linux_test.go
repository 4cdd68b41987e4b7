// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/containerd/nri/pkg/adaptation"
	"github.com/containerd/nri/pkg/api"
	"go.uber.org/zap"

	"github.com/fastlabel/fastlabel/internal/mountinfo"
	"github.com/fastlabel/fastlabel/relabel"
	"github.com/fastlabel/fastlabel/test/treetest"
)

// soon is a wait that no test has to sit out often. What is asserted does not depend on
// it: the work is held up for as long as the test wants.
const soon = 20 * time.Millisecond

// TestRetryJoins: while the work is held up each request is answered, with how far it is;
// the one after it has ended gets its result. There is one walk.
func TestRetryJoins(t *testing.T) {
	n, g := newNode(t), newGate()
	n.start()
	plug := n.plug(soon, 4, g)
	vol, p := n.volume("v"), n.pod("a", itsLevel)
	p.mount(vol, localPV)
	for range 3 {
		n.goesOn(p, "pv: ")
	}
	treetest.Wait(t, "the walk", g.reached)
	if has(t, vol, newLabel) == entries {
		t.Error("it is labelled before the gate opens")
	}
	g.release()
	n.starts(p)
	g.oneWalk(t, has(t, vol, newLabel))
	n.starts(p)
	if plug.counts.of(labelled) != 2 {
		t.Errorf("%v", plug.counts.requests)
	}
	g.oneWalk(t, has(t, vol, newLabel))
}

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

// TestTwentyPods: each has a mount of its own of one volume, by two ways. One walk.
func TestTwentyPods(t *testing.T) {
	n, g := newNode(t), newGate()
	n.start()
	l := n.plug(time.Millisecond, 4, g).labeller
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
	if walk, queued := l.states(); walk != 1 || queued != 0 {
		t.Errorf("%d at work, %d wait", walk, queued)
	}
	g.release()
	for _, p := range all {
		n.starts(p)
	}
	g.oneWalk(t, has(t, vol, newLabel))
}

// TestBeside: while one volume is held up, other pods are answered: one that asks for
// nothing, and one whose volume is labelled beside it.
func TestBeside(t *testing.T) {
	n, g := newNode(t), newGate()
	n.start()
	n.plug(soon, 2, g)
	slow, quick, other := n.pod("slow", itsLevel), n.pod("quick", itsLevel), n.pod("other", itsLevel)
	slow.mount(n.volume("slow"), localPV)
	done := n.volume("quick")
	treetest.Label(t, done, newLabel)
	quick.mount(done, localPV)
	other.annotations = nil
	n.goesOn(slow)
	treetest.Wait(t, "the walk", g.reached)
	if err := n.ask(other); err != nil {
		t.Error(err)
	}
	n.starts(quick)
	n.goesOn(slow)
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
		l := newLabeller(1, time.Hour, zap.NewNop(), new(counts))
		plug := newPlugin(200*time.Millisecond, places{n.in("pods"), []string{n.in("bundles", "{id}")}}, l)
		all, err := plug.places.volumes(p.uid, readMounts)
		if err != nil || len(all) != 1 || all[0].path != at {
			t.Fatalf("%+v, %v", all, err)
		}
		busy := &job{volume: all[0], label: newLabel, since: time.Now(), step: "busy", done: make(chan struct{}), unasked: time.NewTimer(time.Hour)}
		l.jobs[key{busy.device, busy.root, newLabel}] = busy
		let := make(chan struct{})
		for _, hangs := range []bool{false, true} {
			if hangs {
				l.mounts = func() ([]mountinfo.Mount, error) { <-let; return readMounts() }
			}
			began := time.Now()
			err := plug.RunPodSandbox(t.Context(), request)
			if took := time.Since(began); err == nil || took != plug.wait {
				t.Errorf("the look hangs %v: %v after %v", hangs, err, took)
			}
			if hangs {
				close(let)
			}
			synctest.Wait()
			if busy.waiting != 0 {
				t.Errorf("%d requests wait that were answered", busy.waiting)
			}
		}
	})
}

// hung mounts a filesystem whose server never answers, and returns what lets all calls go.
func hung(t *testing.T, at string) (abort func()) {
	t.Helper()
	treetest.Need(t, "fuse")
	server, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0)
	if err == nil {
		err = syscall.Mount("hung", at, "fuse.hung", 0, fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0", server.Fd()))
	}
	if err != nil {
		t.Fatal(err)
	}
	abort = sync.OnceFunc(func() { _ = server.Close() })
	t.Cleanup(abort)
	return abort
}

// TestHung: volumes on dead storage take no place from the others, however many, and
// each request for them is answered.
func TestHung(t *testing.T) {
	n, g := newNode(t), newGate()
	g.release()
	n.start()
	plug := n.plug(soon, 1, g)
	var dead []*pod
	for i := range 3 {
		p := n.pod(fmt.Sprintf("dead-%d", i), itsLevel)
		t.Cleanup(hung(t, n.mkdir("pods", p.uid, "volumes", localPV)))
		dead = append(dead, p)
	}
	for range 3 {
		for _, p := range dead {
			n.goesOn(p, "reading its label")
		}
	}
	if _, queued := plug.labeller.states(); queued != len(dead) {
		t.Errorf("%d jobs for %d volumes", queued, len(dead))
	}
	p, vol := n.pod("a", itsLevel), n.volume("v")
	p.mount(vol, localPV)
	n.starts(p)
	g.oneWalk(t, has(t, vol, newLabel))
}

// TestDropped: the runtime drops a plugin whose answer is late for it, and the pod starts
// without. The plugin comes back, also to a runtime that was restarted; the work is the same.
func TestDropped(t *testing.T) {
	n, g := newNode(t), newGate()
	n.start()
	n.plug(soon, 4, g)
	vol, p := n.volume("v"), n.pod("a", itsLevel)
	p.mount(vol, localPV)
	n.goesOn(p)
	adaptation.SetPluginRequestTimeout(time.Microsecond)
	// Now and then its error is there in time. That the pod starts while the gate is closed
	// says that it was dropped.
	n.starts(p)
	adaptation.SetPluginRequestTimeout(treetest.Patience)
	n.registered()
	n.goesOn(p)
	n.runtime.Stop()
	n.cut()
	n.start()
	n.registered()
	n.goesOn(p)
	g.release()
	n.starts(p)
	g.oneWalk(t, has(t, vol, newLabel))
}

// interrupted says whether the root has the seal of a run that did not end.
func interrupted(t *testing.T, root string) bool {
	t.Helper()
	s, err := relabel.Inspect(root, newLabel, relabel.TrustRoot)
	if err != nil {
		t.Fatal(err)
	}
	return s.Interrupted && !s.Labelled
}

// TestEnds: a plugin that is killed, or told to end, in the middle leaves the seal, and the
// next one completes the work.
func TestEnds(t *testing.T) {
	for _, signal := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM} {
		t.Run(signal.String(), func(t *testing.T) {
			n := newNode(t)
			n.start()
			metrics := n.in("fastlabel.prom")
			first := startProcess(t, n, entries/2, "--metrics", metrics)
			n.registered()
			vol, p := n.volume("v"), n.pod("a", itsLevel)
			p.mount(vol, localPV)
			treetest.Wait(t, "the plugin to be held up", func() bool { _ = n.ask(p); return first.isHeld() })
			treetest.Wait(t, "metrics", func() bool { _, err := os.Stat(metrics); return err == nil })
			n.goesOn(p, "pv: ")
			if err := first.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
			treetest.Returns(t, "the plugin", func() { _ = first.Wait() }) // judged by its state
			if code := first.ProcessState.ExitCode(); signal == syscall.SIGTERM && code != 0 {
				t.Errorf("exit %d", code)
			}
			if some := has(t, vol, newLabel); !interrupted(t, vol) || some == 0 || some == entries {
				t.Errorf("sealed %v, %d labelled", interrupted(t, vol), some)
			}
			text, err := os.ReadFile(metrics)
			if last := `volumes_total{result="stopped"} 1`; err != nil || strings.Contains(string(text), last) != (signal == syscall.SIGTERM) {
				t.Errorf("%v, metrics %s", err, text)
			}
			startProcess(t, n, 0)
			n.registered()
			n.starts(p)
			if all := has(t, vol, newLabel); all != entries {
				t.Errorf("%d labelled", all)
			}
		})
	}
}

// TestAtOnce: of three volumes one is labelled at a time, and the others say that they
// wait.
func TestAtOnce(t *testing.T) {
	n, g := newNode(t), newGate()
	n.start()
	l := n.plug(soon, 1, g).labeller
	var pods []*pod
	for i := range 3 {
		p := n.pod(fmt.Sprintf("pod-%d", i), itsLevel)
		p.mount(n.volume(p.uid), localPV)
		pods = append(pods, p)
		n.goesOn(p)
		treetest.Wait(t, "the first walk", g.reached)
	}
	for _, p := range pods[1:] {
		n.goesOn(p, "waiting for other volumes")
	}
	if walk, queued := l.states(); walk != 1 || queued != 2 {
		t.Errorf("%d at work, %d wait", walk, queued)
	}
	g.release()
	for _, p := range pods {
		n.starts(p)
	}
}

// TestYields: a volume that waits, here for a relabel by another program, gives its place
// to the next one, and goes on without when it can.
func TestYields(t *testing.T) {
	n, g := newNode(t), newGate()
	g.release()
	n.start()
	l := n.plug(soon, 1, g).labeller
	vol, p, next := n.volume("v"), n.pod("a", itsLevel), n.pod("next", itsLevel)
	p.mount(vol, localPV)
	next.mount(n.volume("next"), localPV)
	other, others := newGate(), make(chan error, 1)
	defer other.release()
	go func() {
		_, err := relabel.Tree(t.Context(), vol, oldLabel+":c1", &relabel.Options{Trace: &relabel.Trace{Change: other.change}})
		others <- err
	}()
	treetest.Wait(t, "the other program", other.reached)
	n.goesOn(p, "lock")
	began := func(at time.Time) {
		l.mu.Lock()
		defer l.mu.Unlock()
		for _, j := range l.jobs {
			j.walks = at
		}
	}
	began(time.Now().Add(time.Hour)) // it has waited for no time at all
	l.yield()
	for range 3 {
		n.goesOn(next, "waiting for other volumes")
	}
	began(time.Now().Add(-watchEach))
	l.yield()
	n.starts(next)
	other.release()
	if err := <-others; err != nil {
		t.Error(err)
	}
	n.starts(p)
	if all := has(t, vol, newLabel); all != entries {
		t.Errorf("%d labelled", all)
	}
}

// TestUnasked: work that nobody asks for again ends, and the root is sealed. Who asks then
// has it done.
func TestUnasked(t *testing.T) {
	n, g := newNode(t), newGate()
	n.start()
	l := n.plug(soon, 4, g).labeller
	vol, p := n.volume("v"), n.pod("a", itsLevel)
	p.mount(vol, localPV)
	n.goesOn(p)
	treetest.Wait(t, "the walk", g.reached)
	linger := func(d time.Duration) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.linger = d
	}
	linger(soon)
	n.goesOn(p)
	treetest.Wait(t, "the job to end", func() bool { walk, queued := l.states(); return walk+queued == 0 })
	linger(time.Hour)
	if has(t, vol, newLabel) == entries || !interrupted(t, vol) {
		t.Errorf("sealed %v, %d labelled", interrupted(t, vol), has(t, vol, newLabel))
	}
	g.release()
	n.starts(p)
	if all := has(t, vol, newLabel); all != entries {
		t.Errorf("%d labelled", all)
	}
}

// TestUnmounted: what lies beneath a volume that was unmounted before its turn came is not
// labelled in its place.
func TestUnmounted(t *testing.T) {
	n, g := newNode(t), newGate()
	n.start()
	l := n.plug(soon, 1, g).labeller
	first, p := n.pod("first", itsLevel), n.pod("a", itsLevel)
	first.mount(n.volume("first"), localPV)
	at := p.mount(n.volume("v"), localPV)
	n.goesOn(first)
	treetest.Wait(t, "the first walk", g.reached)
	n.goesOn(p, "waiting for other volumes")
	if err := syscall.Unmount(at, 0); err != nil {
		t.Fatal(err)
	}
	g.release()
	treetest.Wait(t, "the jobs to end", func() bool { walk, queued := l.states(); return walk+queued == 0 })
	if has(t, at, newLabel) != 0 {
		t.Error("the directory beneath is labelled")
	}
}

// TestFailureIsTold: one request is told of a failure that came when nobody waited; the
// next one tries again.
func TestFailureIsTold(t *testing.T) {
	n := newNode(t)
	dir := n.mkdir("bare")
	if err := syscall.Mount("bare", dir, "ramfs", 0, ""); err != nil {
		t.Fatal(err)
	}
	l := newLabeller(1, time.Hour, zap.NewNop(), new(counts))
	defer func() {
		if err := l.shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	v := volume{path: dir, name: "bare", device: "0:1", root: "/"}
	first := l.join(v, newLabel)
	l.leave([]*job{first})
	<-first.done
	if !errors.Is(first.err, errors.ErrUnsupported) {
		t.Errorf("%v", first.err)
	}
	if second := l.join(v, newLabel); second != first {
		t.Error("nobody is told")
	}
	if third := l.join(v, newLabel); third == first {
		t.Error("it is not tried again")
	} else {
		<-third.done
	}
}
