// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/fastlabel/fastlabel/internal/mountinfo"
	"github.com/fastlabel/fastlabel/relabel"
	"github.com/fastlabel/fastlabel/test/treetest"
)

// hung mounts a filesystem whose server never answers, and returns what lets all calls go.
func hung(t *testing.T, at string) (abort func()) {
	t.Helper()
	treetest.Need(t, "fuse")
	server, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0)
	if err == nil {
		err = syscall.Mount("hung", at, "fuse.hung", 0, fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0", server.Fd()))
	}
	treetest.Must(t, err)
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
		_, err := relabel.Tree(t.Context(), vol, oldLabel+":c1", &relabel.Options{Workers: 1, Throttle: other.throttle, Trace: &relabel.Trace{Change: other.change}})
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
	treetest.Check(t, <-others)
	n.completes(p, vol)
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
	n.completes(p, vol)
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
	treetest.Must(t, syscall.Unmount(at, 0))
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
	treetest.Must(t, syscall.Mount("bare", dir, "ramfs", 0, ""))
	l := newLabeller(1, time.Hour, slog.New(slog.DiscardHandler), new(counts))
	defer func() {
		treetest.Check(t, l.shutdown(context.Background()))
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

// TestDeleted: the run of a pod that is being deleted keeps its volume until the first of
// the pod's other volumes is unmounted. Another pod that waits has it resumed.
func TestDeleted(t *testing.T) {
	n, g := newNode(t), newGate()
	n.start()
	l := n.plug(soon, 4, g).labeller
	vol, p, other := n.volume("v"), n.pod("a", itsLevel), n.pod("other", itsLevel)
	at, token := p.mount(vol, localPV), p.mount(n.mkdir("token"), "kubernetes.io~projected/token")
	other.mount(vol, localPV)
	n.goesOn(p)
	treetest.Wait(t, "the walk", g.reached)
	n.goesOn(other)
	l.release()
	if err := syscall.Unmount(at, 0); !errors.Is(err, syscall.EBUSY) {
		t.Errorf("unmounted during the run: %v", err)
	}
	treetest.Must(t, syscall.Unmount(token, 0))
	l.release()
	treetest.Wait(t, "the volume to be let go", func() bool { return syscall.Unmount(at, 0) == nil })
	if has(t, vol, newLabel) == entries || !interrupted(t, vol) {
		t.Errorf("sealed %v, %d labelled", interrupted(t, vol), has(t, vol, newLabel))
	}
	g.release()
	n.completes(other, vol)
}

// TestFirstAsksNoMore: the run by the mount of a pod ends when that pod has not asked for
// long, whichever others ask; they have it resumed.
func TestFirstAsksNoMore(t *testing.T) {
	n, g := newNode(t), newGate()
	n.start()
	l := n.plug(soon, 4, g).labeller
	vol, p, other := n.volume("v"), n.pod("a", itsLevel), n.pod("other", itsLevel)
	at := p.mount(vol, localPV)
	other.mount(vol, localPV)
	n.goesOn(p)
	treetest.Wait(t, "the walk", g.reached)
	ago := func(d time.Duration) {
		l.mu.Lock()
		defer l.mu.Unlock()
		for _, j := range l.jobs {
			j.asked = time.Now().Add(-d)
		}
	}
	ago(2 * time.Hour)
	n.goesOn(p) // it asks again
	ago(2 * time.Hour)
	n.goesOn(other)
	treetest.Wait(t, "the volume to be let go", func() bool { return syscall.Unmount(at, 0) == nil })
	g.release()
	n.completes(other, vol)
}

// TestStopBeforeTree: a pod is deleted when its volume's turn has come and the walk has
// not begun.
func TestStopBeforeTree(t *testing.T) {
	n, g := newNode(t), newGate()
	n.start()
	l := n.plug(soon, 1, g).labeller
	for i := range 20 { // a few of which fall between the stop and the walk
		p := n.pod(fmt.Sprintf("p%d", i), itsLevel)
		p.mount(n.volume(p.uid), localPV)
		token := p.mount(n.mkdir("token"), "kubernetes.io~projected/token")
		turn, begin := make(chan struct{}), make(chan struct{})
		var reads atomic.Int32
		l.mounts = func() ([]mountinfo.Mount, error) {
			all, err := mountinfo.Read()
			if reads.Add(1) == 2 { // the first is the request's
				close(turn)
				<-begin
			}
			return all, err
		}
		if n.ask(p) == nil {
			t.Fatal("the pod starts")
		}
		<-turn
		treetest.Must(t, syscall.Unmount(token, 0))
		l.release()
		close(begin)
		treetest.Wait(t, "the walk to end", func() bool { walk, queued := l.states(); return walk+queued == 0 })
	}
}
