// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/containerd/nri/pkg/adaptation"

	"github.com/fastlabel/fastlabel/relabel"
	"github.com/fastlabel/fastlabel/test/treetest"
)

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

// interrupted reports whether the root has the seal of a run that did not end.
func interrupted(t *testing.T, root string) bool {
	t.Helper()
	s, err := relabel.Inspect(root, newLabel, relabel.SkipRoot)
	treetest.Must(t, err)
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
			treetest.Must(t, first.Process.Signal(signal))
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
			n.completes(p, vol)
		})
	}
}
