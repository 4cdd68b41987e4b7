// SPDX-License-Identifier: Apache-2.0

package inside

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fastlabel/fastlabel/test/treetest"
)

// deploy creates an object of deploy/kubernetes, with the level, the volume and the images
// in place of those that its comments say to change.
func deploy(t *testing.T, name, level string) {
	t.Helper()
	// What kubectl kustomize prints.
	deployed, err := os.ReadFile("/payload/deployed.yaml")
	treetest.Must(t, err)
	for object := range strings.SplitSeq(string(deployed), "\n---\n") {
		if !strings.Contains(object, "\n  name: "+name+"\n") {
			continue
		}
		object = strings.NewReplacer(
			"s0:c10,c20", level,
			"kubernetes.io~csi/PV/mount", "kubernetes.io~local-volume/data",
			"registry.example/fastlabel:1", "localhost/fastlabel:1",
			"image: busybox\n", "image: localhost/busybox:1\n",
			"registry.k8s.io/pause:3.10", "localhost/pause:1",
		).Replace(object)
		post(t, object)
		return
	}
	t.Fatalf("deploy/kubernetes has no %s", name)
}

// job runs the Job of deploy/kubernetes to its end.
func job(t *testing.T, level string) {
	t.Helper()
	deploy(t, "fastlabel-data", level)
	begin := time.Now()
	defer func() { // what it said tells why it failed
		if t.Failed() {
			for _, name := range podsOf(t, "job-pvc") {
				t.Logf("%s: %s%s", name, podLog(t, name, "fastlabel"), podLog(t, name, "probe"))
			}
		}
	}()
	complete(t, "fastlabel-data")
	t.Logf("the Job took %v", time.Since(begin).Round(time.Second))
	ended(t, "job-pvc", "fastlabel-data")
}

func complete(t *testing.T, name string) {
	t.Helper()
	await(t, patience, "the Job "+name+" is complete", func() bool {
		var j struct {
			Status struct {
				Conditions []struct{ Type, Message string }
			}
		}
		ask(t, "GET", jobs+"/"+name, &j)
		for _, c := range j.Status.Conditions {
			switch c.Type {
			case "Complete":
				return true
			case "Failed":
				t.Fatalf("the Job %s failed: %s", name, c.Message)
			}
		}
		return false
	})
}

// ended makes what the pods of Jobs said a part of the results, and removes the Jobs.
func ended(t *testing.T, part string, names ...string) {
	t.Helper()
	for _, name := range podsOf(t, part) {
		t.Logf("%s: %s", name, lastLine(podLog(t, name, "fastlabel")))
		for _, e := range events(t, name) {
			t.Log(name + ": " + e)
		}
	}
	for _, name := range names {
		ask(t, "DELETE", jobs+"/"+name+"?propagationPolicy=Background", nil)
	}
	gone(t, part)
}

// podsOf are the names of the pods of a part of deploy/kubernetes.
func podsOf(t *testing.T, part string) []string {
	t.Helper()
	var list struct{ Items []pod }
	ask(t, "GET", namespace+"/pods?labelSelector=app.kubernetes.io/component="+part, &list)
	var names []string
	for _, p := range list.Items {
		names = append(names, p.Metadata.Name)
	}
	return names
}

func gone(t *testing.T, part string) {
	t.Helper()
	await(t, 5*time.Minute, "the pods of "+part+" are gone", func() bool {
		names := podsOf(t, part)
		for _, n := range names {
			ask(t, "DELETE", namespace+"/pods/"+n+"?gracePeriodSeconds=0", nil)
		}
		return len(names) == 0
	})
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}

// TestStoryJob: the same volume, labelled by the Job before the pod comes.
func TestStoryJob(t *testing.T) {
	need(t)
	job(t, "s0:c3,c4")
	holds(t, data, "s0:c3,c4")
	starts(t, "job", data, "s0:c3,c4")
}

// TestStoryInit: the workload labels its volume itself.
func TestStoryInit(t *testing.T) {
	need(t)
	deploy(t, "fastlabel-example", "s0:c5,c6")
	t.Cleanup(func() {
		ask(t, "DELETE", deployments+"/fastlabel-example?propagationPolicy=Background", nil)
		gone(t, "init-container")
	})
	var p string
	took := await(t, patience, "the workload runs", func() bool {
		var list struct{ Items []pod }
		ask(t, "GET", namespace+"/pods?labelSelector=app.kubernetes.io/component=init-container", &list)
		for _, one := range list.Items {
			p = one.Metadata.Name
			return one.running()
		}
		return false
	})
	t.Logf("it runs after %v: %s", took, lastLine(podLog(t, p, "fastlabel")))
	e := events(t, p)
	for _, one := range e {
		t.Log(p + ": " + one)
	}
	if has(e, "deadline") || has(e, "reserved") {
		t.Error("it did not start at the first try")
	}
	holds(t, data, "s0:c5,c6")
}

// find is the process of a program, or 0.
func find(comm string) int {
	all, _ := filepath.Glob("/proc/[0-9]*/comm") // the pattern is right
	for _, f := range all {
		if text, err := os.ReadFile(f); err == nil && strings.TrimSpace(string(text)) == comm {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(f))) // its name is digits
			return pid
		}
	}
	return 0
}

// TestStoryDaemonSet: the local volumes of a node, at its boot.
func TestStoryDaemonSet(t *testing.T) {
	need(t)
	const at = "/mnt/disks/data"
	makeFiles(t, at, 100)
	deploy(t, "fastlabel-local", "s0:c25,c26")
	t.Cleanup(func() {
		ask(t, "DELETE", daemonsets+"/fastlabel-local?propagationPolicy=Background", nil)
		gone(t, "daemonset-local")
	})
	await(t, patience, "the volume is labelled", func() bool { return label(at) == fileType+"s0:c25,c26" })
	holds(t, at, "s0:c25,c26")
}

// TestStoryTrySkip: where CRI-O may skip a volume by its root's label, a pod on the
// labelled one is there as soon as on one with few files.
func TestStoryTrySkip(t *testing.T) {
	if !crio {
		t.Skip("of CRI-O")
	}
	need(t)
	const l = "s0:c41,c42"
	job(t, l)
	at := small(t, "few")
	before := creating(t)
	newPod(t, "few", filepath.Base(at), level(l))
	awaitRunning(t, "few", patience)
	few := creating(t) - before
	before = creating(t)
	starts(t, "many", data, l)
	t.Logf("a container is made in %v, and in %v with few files", creating(t)-before, few)
	skipped(t, "many", "data")
}

// skipped fails the test unless CRI-O's log says that it skipped the pod's claim.
func skipped(t *testing.T, name, claim string) {
	t.Helper()
	text, err := os.ReadFile(run + "/log/runtime")
	treetest.Must(t, err)
	var p pod
	ask(t, "GET", namespace+"/pods/"+name, &p)
	if !strings.Contains(string(text), "Skipping relabel for /var/lib/kubelet/pods/"+p.Metadata.UID+"/volumes/kubernetes.io~local-volume/"+claim+", as TrySkip") {
		t.Error("CRI-O did not skip it")
	}
}
