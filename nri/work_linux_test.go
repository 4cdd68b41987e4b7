// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/containerd/nri/pkg/adaptation"

	"github.com/fastlabel/fastlabel/relabel"
	"github.com/fastlabel/fastlabel/test/treetest"
)

// hung mounts a filesystem whose server never answers, and returns what lets all calls go.
func hung(t *testing.T, at string) (abort func()) {
	t.Helper()
	treetest.Need(t, "fuse")
	server, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0)
	treetest.Must(t, err)
	treetest.Must(t, syscall.Mount("hung", at, "fuse.hung", 0, fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0", server.Fd())))
	abort = sync.OnceFunc(func() { _ = server.Close() })
	t.Cleanup(abort)
	return abort
}

// TestHung: volumes on dead storage, and one that waits for a relabel by another program, keep no
// other waiting, and each request for them is answered.
func TestHung(t *testing.T) {
	n, g := newNode(t), newGate()
	g.release()
	n.start()
	n.plug(soon, 1, g)
	var dead []*pod
	for i := range 3 {
		p := n.pod(fmt.Sprintf("dead-%d", i), itsLevel)
		t.Cleanup(hung(t, n.mkdir("pods", p.uid, "volumes", localPV)))
		dead = append(dead, p)
	}
	vol, locked := n.volume("locked"), n.pod("locked", itsLevel)
	locked.mount(vol, localPV)
	other, others := newGate(), make(chan error, 1)
	defer other.release()
	go func() {
		_, err := relabel.Tree(t.Context(), vol, oldLabel+":c1", &relabel.Options{Workers: 1, Throttle: other.throttle, Trace: &relabel.Trace{Change: other.change}})
		others <- err
	}()
	treetest.Wait(t, "the other program", other.reached)
	for range 3 {
		for _, p := range dead {
			n.goesOn(p, "has not answered yet")
		}
		n.goesOn(locked, "lock")
	}
	free, p := n.volume("free"), n.pod("free", itsLevel)
	p.mount(free, localPV)
	n.completes(p, free)
	other.release()
	treetest.Check(t, <-others)
	n.completes(locked, vol)
}

// TestDeleted: the run of a pod that is being deleted keeps its volume until the first of
// the pod's other volumes is unmounted. Another pod that waits has it resumed. What waits for its
// turn is released so, too.
func TestDeleted(t *testing.T) {
	n, g := newNode(t), newGate()
	n.start()
	plug := n.plug(soon, 1, g)
	vol, p, other, second := n.volume("v"), n.pod("a", itsLevel), n.pod("other", itsLevel), n.pod("second", itsLevel)
	at, token := p.mount(vol, localPV), p.mount(n.mkdir("token"), "kubernetes.io~projected/token")
	other.mount(vol, localPV)
	at2, token2 := second.mount(n.volume("second"), localPV), second.mount(n.mkdir("token"), "kubernetes.io~projected/token")
	n.goesOn(p)
	treetest.Wait(t, "the walk", g.reached)
	n.goesOn(other)
	n.goesOn(second, "waiting for other volumes")
	before := plug.release(nil)
	if err := syscall.Unmount(at, 0); !errors.Is(err, syscall.EBUSY) {
		t.Errorf("unmounted during the run: %v", err)
	}
	if before = plug.release(before); len(plug.group.Pending()) != 2 {
		t.Errorf("%+v", plug.group.Pending())
	}
	treetest.Must(t, syscall.Unmount(token, 0), syscall.Unmount(token2, 0))
	plug.release(before)
	treetest.Check(t, syscall.Unmount(at, 0))
	treetest.Check(t, syscall.Unmount(at2, 0))
	if state, err := relabel.Inspect(vol, newLabel, relabel.SkipRoot); err != nil || !state.Interrupted || state.Labelled {
		t.Errorf("%+v, %v", state, err)
	}
	g.release()
	n.completes(other, vol)
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
