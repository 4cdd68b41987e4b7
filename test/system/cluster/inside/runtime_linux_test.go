// SPDX-License-Identifier: Apache-2.0

package inside

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/fastlabel/fastlabel/test/treetest"
)

// TestStoryHook: a hostPath is relabelled by nobody but the hook, and only if the pod
// asks for it.
func TestStoryHook(t *testing.T) {
	need(t)
	create(t, "runtimeclass", nil)
	for relabel, want := range map[string]string{"false": "Permission denied", "true": "read"} {
		at := "/mnt/hook-" + relabel
		makeFiles(t, at, 1)
		treetest.Must(t, os.WriteFile(at+"/f", []byte("read\n"), 0o644))
		name := "hook-" + relabel
		create(t, "hook", map[string]string{"NAME": name, "RELABEL": relabel, "LEVEL": "s0:c27,c28", "PATH": at})
		keep(t, name)
		awaitRunning(t, name, patience)
		text := ""
		await(t, time.Minute, name+" has read", func() bool { text = said(t, name); return text != "" })
		t.Logf("%s: %q, %s", name, text, label(at))
		if !strings.Contains(text, want) {
			t.Errorf("%s: %q has not %q", name, text, want)
		}
	}
}

// TestStoryGroup: containerd with a relabel.Group. A request leaves when its own deadline
// comes, and the name is free again for the next one, which joins the walk: no attempt
// gets another number, and the volume is walked once.
func TestStoryGroup(t *testing.T) {
	need(t)
	if crio {
		t.Skip("of containerd")
	}
	node(t, "container_runtime", "containerd-group")
	t.Cleanup(func() { node(t, "container_runtime", "containerd") })
	newPod(t, "group", "data", level("s0:c33,c34"))
	t.Logf("it runs after %v", awaitRunning(t, "group", patience))
	wrote(t, "group", "s0:c33,c34")
	holds(t, data, "s0:c33,c34")
	e := events(t, "group")
	if !has(e, "deadline") {
		t.Error("one request was enough: nobody had to join")
	}
	if has(e, "reserved") {
		t.Error("a request kept the name")
	}
	var p pod
	ask(t, "GET", namespace+"/pods/group", &p)
	for _, c := range p.Status.ContainerStatuses {
		if c.RestartCount != 0 {
			t.Errorf("the attempt has number %d", c.RestartCount)
		}
	}
	text, err := os.ReadFile(run + "/log/runtime")
	treetest.Must(t, err)
	walks, requests, left := 0, 0, 0
	for line := range strings.Lines(string(text)) {
		if !strings.Contains(line, "fastlabel: ") || !strings.Contains(line, "/data") {
			continue
		}
		t.Log(strings.TrimSpace(line))
		switch {
		case strings.Contains(line, "a walk begins"):
			walks++
		case strings.Contains(line, "relabelling continues"):
			left++
			fallthrough
		default:
			requests++
		}
	}
	t.Logf("%d requests, of which %d left; %d walk", requests, left, walks)
	if walks != 1 || left < 1 || requests != left+1 {
		t.Error("not one walk that some left and the last one joined")
	}
}
