// SPDX-License-Identifier: Apache-2.0

package inside

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fastlabel/fastlabel/test/treetest"
)

// data is the claim that deploy/kubernetes names, and files how many it has. The
// emulated disk never waits, so to write a label took hardly longer than to read one.
// Mounted with sync, it takes many times that, as on a cluster's disks.
const (
	data  = "/volumes/ext4/data"
	files = 8_000
)

// patience is for what takes as long as the processor wants.
const patience = 15 * time.Minute

// limit is the kubelet's runtimeRequestTimeout: a third of what a walk that writes takes,
// since the host may have more time for the machine later, and long enough for one that
// reads.
var limit time.Duration

// ready waits until the node takes pods.
func ready(t *testing.T) {
	t.Helper()
	await(t, 10*time.Minute, "the node is ready", func() bool {
		var node struct {
			Status struct {
				Conditions []struct{ Type, Status string }
			}
		}
		ask(t, "GET", "/api/v1/nodes/node", &node)
		for _, c := range node.Status.Conditions {
			if c.Type == "Ready" && c.Status == "True" {
				return true
			}
		}
		return false
	})
}

// need makes the claim and sets the limit at the first need.
func need(t *testing.T) {
	t.Helper()
	if limit != 0 {
		return
	}
	ready(t)
	begin := time.Now()
	makeFiles(t, data, files)
	treetest.Must(t, syscall.Mount("", "/volumes/ext4", "", syscall.MS_REMOUNT|syscall.MS_SYNCHRONOUS, ""))
	t.Logf("the claim has %d files, made in %v", files, time.Since(begin).Round(time.Second))
	create(t, "volume", map[string]string{"NAME": "data", "PATH": data})
	var took [2]time.Duration
	for i, name := range []string{"writes", "reads"} {
		t.Run(name, func(t *testing.T) {
			before := creating(t)
			newPod(t, name, "data", level("s0:c1000,c1001"))
			awaitRunning(t, name, 10*time.Minute)
			took[i] = creating(t) - before
		})
	}
	third := (took[0] / 3).Round(100 * time.Millisecond)
	t.Logf("the runtime makes a container in %v, and in %v when the labels are right: requests have %v", took[0], took[1], third)
	if took[1] > third/2 {
		t.Fatal("that is too near")
	}
	node(t, "kubelet", third.String())
	limit = third
}

// node does again what guest/node did at the start.
func node(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.Command("node", args...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// creating is the time that the runtime took to make containers, as the kubelet saw it.
func creating(t *testing.T) time.Duration {
	t.Helper()
	text, err := get("https://127.0.0.1:10250/metrics")
	treetest.Must(t, err)
	m := createTime.FindSubmatch(text)
	if m == nil {
		return 0 // none yet
	}
	seconds, err := strconv.ParseFloat(string(m[1]), 64)
	treetest.Must(t, err)
	return time.Duration(seconds * float64(time.Second))
}

var createTime = regexp.MustCompile(`(?m)^kubelet_runtime_operations_duration_seconds_sum{operation_type="create_container"} (.*)$`)

func newPod(t *testing.T, name, claim, options string) {
	t.Helper()
	create(t, "pod", map[string]string{"NAME": name, "CLAIM": claim, "OPTIONS": options})
	keep(t, name)
}

func level(l string) string { return fmt.Sprintf("{level: %q}", l) }

var reservedName = regexp.MustCompile(`k8s_app_fails_\S+ for id \w+: name is reserved`)

// TestStoryFails: the failure that all this is about, and the control of what follows.
func TestStoryFails(t *testing.T) {
	need(t)
	newPod(t, "fails", "data", level("s0:c1,c2"))
	begin := time.Now()
	exceeds(t, "fails")
	t.Logf("the deadline is exceeded after %v", time.Since(begin).Round(time.Second))
	await(t, patience, "somebody says that the name is reserved", func() bool {
		// CRI-O holds the next request until the first has ended, and then logs why.
		text, err := os.ReadFile(run + "/log/runtime")
		return has(events(t, "fails"), "is reserved for") || crio && err == nil && reservedName.Match(text)
	})
	t.Logf("the name is reserved after %v", time.Since(begin).Round(time.Second))
	awaitRunning(t, "fails", patience)
	t.Logf("it runs after %v, when the walk has ended", time.Since(begin).Round(time.Second))
}

// exceeds waits until the kubelet has given up a request for the pod.
func exceeds(t *testing.T, name string) {
	t.Helper()
	await(t, patience, "an event says that the deadline is exceeded", func() bool {
		if has(events(t, name), "context deadline exceeded") {
			return true
		}
		var p pod
		if ask(t, "GET", namespace+"/pods/"+name, &p); p.running() {
			t.Fatal("it runs within the limit: the machine has more time than when that was chosen")
		}
		return false
	})
}

// small makes a claim with few files, labelled for nobody.
func small(t *testing.T, name string) string {
	t.Helper()
	need(t)
	at := "/volumes/xfs/" + name
	makeFiles(t, at, 100)
	create(t, "volume", map[string]string{"NAME": name, "PATH": at})
	return at
}

// starts fails the test unless the pod starts at the first try, and the runtime has
// written no label: all that changes is the file that the pod writes.
func starts(t *testing.T, name, at, l string) {
	t.Helper()
	startsWith(t, name, at, level(l), l)
}

// startsWith is starts for a pod whose options are not its level.
func startsWith(t *testing.T, name, at, options, l string) {
	t.Helper()
	begin := time.Now()
	newPod(t, name, filepath.Base(at), options)
	t.Logf("%s runs after %v", name, awaitRunning(t, name, patience))
	if e := events(t, name); has(e, "deadline") || has(e, "reserved") {
		t.Errorf("%s did not start at the first try", name)
	}
	wrote(t, name, l)
	labels, changed := read(t, at, begin)
	t.Logf("%s: %v, %d entries changed since it was created", name, labels, changed)
	if changed > 1 {
		t.Error("the runtime wrote labels")
	}
	holds(t, at, l)
}

// wrote fails the test unless the pod has the level and could write into its volume.
func wrote(t *testing.T, name, l string) {
	t.Helper()
	text := ""
	await(t, time.Minute, name+" has written", func() bool {
		text = said(t, name)
		return strings.Contains(text, "written")
	})
	if !strings.Contains(text, "container_t:"+l) {
		t.Errorf("%s: not with level %s: %q", name, l, text)
	}
	t.Logf("%s: %q", name, text)
}
