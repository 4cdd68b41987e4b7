// SPDX-License-Identifier: Apache-2.0

package inside

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

const (
	// That of deploy/kubernetes/nri.
	plugins = "/apis/apps/v1/namespaces/fastlabel-nri/daemonsets"
	goesOn  = "labelling goes on"
)

// deployPlugin creates the DaemonSet of deploy/kubernetes/nri, until the test ends.
func deployPlugin(t *testing.T) {
	t.Helper()
	began := time.Now()
	deployed, err := os.ReadFile("/payload/deployed-nri.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for object := range strings.SplitSeq(string(deployed), "\n---\n") {
		if !strings.Contains(object, "\nkind: DaemonSet\n") {
			continue
		}
		object = strings.ReplaceAll(object, "registry.example/fastlabel-nri:1", "localhost/fastlabel-nri:1")
		if code, said := request("POST", plugins+"?fieldValidation=Strict", object); code != http.StatusCreated {
			t.Fatalf("%d %s", code, said)
		}
	}
	t.Cleanup(func() {
		for _, line := range pluginLog(t) {
			t.Log("plugin: " + line)
		}
		ask(t, "DELETE", plugins+"/fastlabel-nri?propagationPolicy=Background", nil)
		await(t, patience, "the plugin is gone", func() bool { return find("fastlabel-nri") == 0 })
	})
	await(t, patience, "the plugin is connected", func() bool {
		return slices.ContainsFunc(pluginLog(t), func(line string) bool {
			var l struct {
				TS  time.Time
				Msg string
			}
			return json.Unmarshal([]byte(line), &l) == nil && l.Msg == "connected" && l.TS.After(began)
		})
	})
}

// pluginLog are the lines that the plugin logged.
func pluginLog(t *testing.T) (lines []string) {
	t.Helper()
	files, err := filepath.Glob(run + "/podlogs/fastlabel-nri_*/fastlabel-nri/*.log")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if _, json, is := strings.Cut(line, " F "); is {
				lines = append(lines, strings.TrimSpace(json))
			}
		}
	}
	return lines
}

// logged counts the lines of the plugin that have all the words.
func logged(t *testing.T, words ...string) (n int) {
	t.Helper()
next:
	for _, line := range pluginLog(t) {
		for _, w := range words {
			if !strings.Contains(line, w) {
				continue next
			}
		}
		n++
	}
	return n
}

// oneWalk fails the test unless one walk wrote labels of this level.
func oneWalk(t *testing.T, l string) {
	t.Helper()
	all, idle := logged(t, `"msg":"volume"`, l+`"`), logged(t, `"msg":"volume"`, l+`"`, `"written":0,`)
	if all-idle != 1 {
		t.Errorf("%d walks", all-idle)
	}
}

// prelabelled creates a pod with the annotation.
func prelabelled(t *testing.T, name, claim, l string) {
	t.Helper()
	create(t, "pod", map[string]string{"NAME": name, "CLAIM": claim, "OPTIONS": level(l), "PRELABEL": l})
	keep(t, name)
}

// waits waits until an event of the pod tells how far the plugin is.
func waits(t *testing.T, name string) {
	t.Helper()
	took := await(t, patience, name+" is told how far it is", func() bool { return has(events(t, name), goesOn) })
	t.Logf("%s is told how far it is after %v", name, took)
}

// inTime fails the test if a request for the pod was late, as without the plugin.
func inTime(t *testing.T, name string) {
	t.Helper()
	if e := events(t, name); has(e, "deadline exceeded") || has(e, "is reserved for") {
		t.Errorf("a request for %s was late", name)
	}
}

// TestStoryPlugin: the node plugin labels the volume while the start is tried again. The
// control is TestStoryFails, the same volume without it.
func TestStoryPlugin(t *testing.T) {
	need(t)
	beside := func(name string) time.Duration {
		newPod(t, name, "beside", level("s0:c49,c50"))
		return awaitRunning(t, name, patience)
	}
	small(t, "beside")
	before := []time.Duration{beside("before-1"), beside("before-2")}
	deployPlugin(t)

	const l = "s0:c55,c56"
	prelabelled(t, "plugin", "data", l)
	during := beside("during")
	if label(data) == fileType+l {
		t.Error("the work ended before another pod had started beside it")
	}
	t.Logf("another pod runs after %v without the plugin, %v while it works", before, during)
	waits(t, "plugin")
	t.Logf("it runs after %v more", awaitRunning(t, "plugin", patience))
	inTime(t, "plugin")
	wrote(t, "plugin", l)
	holds(t, data, l)
	oneWalk(t, l)
	if n := logged(t, `"msg":"RunPodSandbox"`, `"pod":"during"`); n != 0 {
		t.Error("the plugin looked at a pod that did not ask")
	}
}

// TestStoryPluginKilled: the plugin is killed at its work. The root is trusted for nothing,
// and the next one resumes.
func TestStoryPluginKilled(t *testing.T) {
	need(t)
	deployPlugin(t)
	old := label(data)
	const l = "s0:c43,c44"
	prelabelled(t, "plugin-killed", "data", l)
	waits(t, "plugin-killed")
	pid := find("fastlabel-nri")
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if has := label(data); has == old || has == fileType+l {
		t.Errorf("killed at its work, and the root has %s", has)
	} else {
		t.Logf("killed at its work, and the root has %s", has)
	}
	await(t, patience, "another one runs", func() bool { next := find("fastlabel-nri"); return next != 0 && next != pid })
	t.Logf("it runs after %v more", awaitRunning(t, "plugin-killed", patience))
	wrote(t, "plugin-killed", l)
	holds(t, data, l)
}

// TestStoryPluginDeleted: a pod is deleted while the plugin works for it. Its volume goes
// soon, before the work would have ended.
func TestStoryPluginDeleted(t *testing.T) {
	need(t)
	deployPlugin(t)
	const l = "s0:c47,c48"
	prelabelled(t, "plugin-deleted", "data", l)
	waits(t, "plugin-deleted")
	var p pod
	ask(t, "GET", namespace+"/pods/plugin-deleted", &p)
	ask(t, "DELETE", namespace+"/pods/plugin-deleted?gracePeriodSeconds=0", nil)
	took := await(t, patience, "its volumes are unmounted", func() bool {
		left, err := filepath.Glob("/var/lib/kubelet/pods/" + p.Metadata.UID + "/volumes/*/*")
		return err == nil && len(left) == 0
	})
	t.Logf("its volumes are unmounted %v after it was deleted; the root has %s", took, label(data))
	if label(data) == fileType+l {
		t.Error("the work was not ended")
	}
}

// TestStoryPluginMany: twenty pods have one volume, and there is one walk.
func TestStoryPluginMany(t *testing.T) {
	ready(t)
	patient(t)
	deployPlugin(t)
	const at, l = "/volumes/tmpfs/many", "s0:c45,c46"
	makeFiles(t, at, 1000)
	create(t, "volume", map[string]string{"NAME": "many", "PATH": at})
	var names []string
	for i := range 20 {
		names = append(names, fmt.Sprintf("many-%d", i))
		prelabelled(t, names[i], "many", l)
	}
	for _, name := range names {
		awaitRunning(t, name, patience)
	}
	holds(t, at, l)
	oneWalk(t, l)
}
