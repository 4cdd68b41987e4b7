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
	"testing"
	"time"

	"github.com/fastlabel/fastlabel/test/treetest"
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
	treetest.Must(t, err)
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
	treetest.Must(t, err)
	for _, f := range files {
		text, err := os.ReadFile(f)
		treetest.Must(t, err)
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
	create(t, "pod", map[string]string{"NAME": "plugin", "CLAIM": "data", "OPTIONS": level(l), "PRELABEL": l})
	keep(t, "plugin")
	during := beside("during")
	if label(data) == fileType+l {
		t.Error("the work ended before another pod had started beside it")
	}
	t.Logf("another pod runs after %v without the plugin, %v while it works", before, during)
	took := await(t, patience, "the pod is told how far it is", func() bool { return has(events(t, "plugin"), goesOn) })
	t.Logf("it is told how far it is after %v", took)
	t.Logf("it runs after %v more", awaitRunning(t, "plugin", patience))
	if e := events(t, "plugin"); has(e, "deadline exceeded") || has(e, "is reserved for") {
		t.Error("a request was late, as without the plugin")
	}
	wrote(t, "plugin", l)
	holds(t, data, l)
	all, idle := logged(t, `"msg":"volume"`, l+`"`), logged(t, `"msg":"volume"`, l+`"`, `"written":0,`)
	if all-idle != 1 {
		t.Errorf("%d walks", all-idle)
	}
	if n := logged(t, `"msg":"RunPodSandbox"`, `"pod":"during"`); n != 0 {
		t.Error("the plugin looked at a pod that did not ask")
	}
}

// TestStorySoak: pods that ask the plugin, one after another for as long as SOAK says: each starts
// on a volume that the plugin labelled, none by a late request, and one process of the plugin does
// it all, whose memory does not grow.
func TestStorySoak(t *testing.T) {
	soak, _ := time.ParseDuration(os.Getenv("SOAK"))
	if soak == 0 {
		t.Skip("SOAK=24h runs it")
	}
	at := small(t, "soak")
	node(t, "kubelet", "2m") // the kubelet's own: another request than the plugin's may take long
	defer node(t, "kubelet", limit.String())
	deployPlugin(t)
	pid, begin, most := find("fastlabel-nri"), time.Now(), [2]int{} // KiB, in the first half and in the second
	for pods, ok := 0, true; ok; pods++ {
		half := min(int(2*time.Since(begin)/soak), 1)
		most[half] = max(most[half], resident(t, pid))
		if time.Since(begin) >= soak {
			t.Logf("%d pods in %v; the plugin had %d KiB at most, and %d in the second half", pods, time.Since(begin).Round(time.Second), most[0], most[1])
			break
		}
		name, l := fmt.Sprintf("soak-%d", pods), fmt.Sprintf("s0:c%d,c%d", pods/500, 501+pods%500)
		ok = t.Run(name, func(t *testing.T) {
			create(t, "pod", map[string]string{"NAME": name, "CLAIM": "soak", "OPTIONS": level(l), "PRELABEL": l})
			keep(t, name)
			awaitRunning(t, name, patience)
			wrote(t, name, l)
			holds(t, at, l)
			if e := events(t, name); has(e, "deadline exceeded") || has(e, "is reserved for") {
				t.Error("a request was late")
			}
			if logged(t, `"msg":"volume"`, l+`"`)-logged(t, `"msg":"volume"`, l+`"`, `"written":0,`) != 1 {
				t.Error("the plugin did not label it once")
			}
			treetest.Must(t, os.Remove(filepath.Join(at, name))) // what it wrote
		})
	}
	if find("fastlabel-nri") != pid || most[1] > most[0]+most[0]/8 {
		t.Error("the plugin was begun anew, or its memory grows")
	}
}

// resident is the memory that a process has, in KiB.
func resident(t *testing.T, pid int) (kib int) {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	treetest.Must(t, err)
	_, rest, _ := strings.Cut(string(text), "\nVmRSS:")
	_, err = fmt.Sscan(rest, &kib)
	treetest.Must(t, err)
	return kib
}
