// SPDX-License-Identifier: Apache-2.0

package inside

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// data is the claim that deploy/kubernetes names, with so many files that a runtime's
// own walk takes longer than a request may. On a disk the machine takes minutes to make
// them.
const data = "/volumes/tmpfs/data"

// limit is the kubelet's runtimeRequestTimeout.
var limit, _ = time.ParseDuration(os.Getenv("REQUEST_TIMEOUT"))

// need makes the claim at the first need.
func need(t *testing.T) {
	t.Helper()
	if _, err := os.Stat(data); err == nil {
		return
	}
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
	n := enough(t, limit)
	begin := time.Now()
	makeFiles(t, data, n)
	t.Logf("the claim has %d files, made in %v", n, time.Since(begin).Round(time.Second))
	create(t, "volume", map[string]string{"NAME": "data", "PATH": data})
}

func newPod(t *testing.T, name, claim, options string) {
	t.Helper()
	create(t, "pod", map[string]string{"NAME": name, "CLAIM": claim, "OPTIONS": options, "SUBPATH": "", "READONLY": "false"})
	keep(t, name)
}

func level(l string) string { return fmt.Sprintf("{level: %q}", l) }

// deploy creates a part of deploy/kubernetes, with the level, the volume and the images
// in place of those that its comments say to change.
func deploy(t *testing.T, kind, level string) {
	t.Helper()
	// What kubectl kustomize prints.
	deployed, err := os.ReadFile("/payload/deployed.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for object := range strings.SplitSeq(string(deployed), "\n---\n") {
		if !strings.Contains("\n"+object, "\nkind: "+kind+"\n") {
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
	t.Fatalf("deploy/kubernetes has no %s", kind)
}

// job runs the Job of deploy/kubernetes to its end.
func job(t *testing.T, level string, during func()) {
	t.Helper()
	deploy(t, "Job", level)
	begin := time.Now()
	during()
	await(t, 20*limit, "the Job is complete", func() bool {
		var j struct {
			Status struct {
				Succeeded  int
				Conditions []struct{ Type, Message string }
			}
		}
		ask(t, "GET", jobs+"/fastlabel-data", &j)
		for _, c := range j.Status.Conditions {
			if c.Type == "Failed" {
				t.Fatalf("the Job failed: %s\n%s", c.Message, strings.Join(podsOf(t, "job-pvc"), "\n"))
			}
		}
		return j.Status.Succeeded > 0
	})
	t.Logf("the Job took %v", time.Since(begin).Round(time.Second))
	for _, name := range podsOf(t, "job-pvc") {
		t.Logf("%s: %s", name, lastLine(podLog(t, name, "fastlabel")))
		for _, e := range events(t, name) {
			t.Log(name + ": " + e)
		}
	}
	ask(t, "DELETE", jobs+"/fastlabel-data?propagationPolicy=Background", nil)
	gone(t, "job-pvc")
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

// TestStoryFails: the failure that all this is about, and the control of what follows.
func TestStoryFails(t *testing.T) {
	need(t)
	newPod(t, "fails", "data", level("s0:c1,c2"))
	begin := time.Now()
	await(t, 20*limit, "an event says that the deadline is exceeded", func() bool {
		return has(events(t, "fails"), "context deadline exceeded")
	})
	t.Logf("the deadline is exceeded after %v", time.Since(begin).Round(time.Second))
	await(t, 20*limit, "an event says that the name is reserved", func() bool {
		return has(events(t, "fails"), "is reserved for")
	})
	t.Logf("the name is reserved after %v", time.Since(begin).Round(time.Second))
	awaitRunning(t, "fails", 40*limit)
	t.Logf("it runs after %v, when the walk has ended", time.Since(begin).Round(time.Second))
}

// starts fails the test unless the pod starts at the first try, and the runtime has
// written no label: all that changes is the file that the pod writes.
func starts(t *testing.T, name, at, l string) {
	t.Helper()
	begin := time.Now()
	newPod(t, name, filepath.Base(at), level(l))
	t.Logf("%s runs after %v", name, awaitRunning(t, name, 6*limit))
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

// TestStoryJob: the same volume, labelled by the Job before the pod comes.
func TestStoryJob(t *testing.T) {
	need(t)
	job(t, "s0:c3,c4", func() {})
	holds(t, data, "s0:c3,c4")
	starts(t, "job", data, "s0:c3,c4")
}

// TestStoryInit: the workload labels its volume itself.
func TestStoryInit(t *testing.T) {
	need(t)
	deploy(t, "Deployment", "s0:c5,c6")
	t.Cleanup(func() {
		ask(t, "DELETE", deployments+"/fastlabel-example?propagationPolicy=Background", nil)
		gone(t, "init-container")
	})
	var p string
	took := await(t, 20*limit, "the workload runs", func() bool {
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

// TestStoryKilled: the Job's process is killed on its way. Its successor ends the work,
// and until then the root vouches for nothing.
func TestStoryKilled(t *testing.T) {
	need(t)
	old := label(data)
	const to = "s0:c7,c8"
	job(t, to, func() {
		pid := 0
		await(t, 10*limit, "the Job has sealed the root", func() bool {
			pid = find("fastlabel")
			return pid != 0 && label(data) != old
		})
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		if l := label(data); l == fileType+to || l == old {
			t.Errorf("killed on its way, and the root has %s", l)
		} else {
			t.Logf("killed on its way, and the root has %s", l)
		}
	})
	holds(t, data, to)
	starts(t, "killed", data, to)
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

// TestStoryShared: two pods of one level share the volume, as the last story left it.
func TestStoryShared(t *testing.T) {
	need(t)
	l := strings.TrimPrefix(label(data), fileType)
	starts(t, "one", data, l)
	starts(t, "two", data, l)
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

// TestStoryRandom: a pod without a level gets another one at each start, so nothing
// that was done beforehand is right. The runtime labels each time.
func TestStoryRandom(t *testing.T) {
	at := small(t, "random")
	var seen []string
	for _, name := range []string{"random-1", "random-2"} {
		newPod(t, name, "random", "{}")
		awaitRunning(t, name, 6*limit)
		seen = append(seen, label(at))
	}
	t.Log(seen)
	if seen[0] == seen[1] {
		t.Errorf("twice the same level: %s", seen)
	}
}

// TestStorySubPath: the runtime looks at the directory of a subPath alone.
func TestStorySubPath(t *testing.T) {
	at := small(t, "sub")
	before := label(at)
	create(t, "pod", map[string]string{"NAME": "sub", "CLAIM": "sub", "OPTIONS": level("s0:c21,c22"), "SUBPATH": "0", "READONLY": "false"})
	keep(t, "sub")
	awaitRunning(t, "sub", 6*limit)
	wrote(t, "sub", "s0:c21,c22")
	holds(t, filepath.Join(at, "0"), "s0:c21,c22")
	if l := label(at); l != before {
		t.Errorf("the volume's root has %s, not %s", l, before)
	}
}

// TestStoryReadOnly: of a claim that the pod declares read-only the kubelet asks no
// relabel; the Job's label is the only one that it gets.
func TestStoryReadOnly(t *testing.T) {
	at := small(t, "ro")
	values := map[string]string{"CLAIM": "ro", "OPTIONS": level("s0:c23,c24"), "SUBPATH": "", "READONLY": "true"}
	before := label(at)
	for _, name := range []string{"ro-before", "ro-after"} {
		values["NAME"] = name
		create(t, "pod", values)
		keep(t, name)
		awaitRunning(t, name, 6*limit)
		await(t, time.Minute, "it has tried", func() bool { return strings.Contains(said(t, name), "can't create") })
		text := said(t, name)
		t.Logf("%s: %q", name, text)
		if can := strings.Contains(text, "\n0\n"); can != (name == "ro-after") {
			t.Errorf("%s: can it read? %v", name, can)
		}
		if name == "ro-before" {
			if l := label(at); l != before {
				t.Errorf("the runtime labelled it: %s", l)
			}
			if out, err := exec.Command("/payload/bin/fastlabel", "-l", "s0:c23,c24", at).CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
		}
	}
}

// TestStoryDaemonSet: the local volumes of a node, at its boot.
func TestStoryDaemonSet(t *testing.T) {
	need(t)
	const at = "/mnt/disks/data"
	makeFiles(t, at, 100)
	deploy(t, "DaemonSet", "s0:c25,c26")
	t.Cleanup(func() {
		ask(t, "DELETE", daemonsets+"/fastlabel-local?propagationPolicy=Background", nil)
		gone(t, "daemonset-local")
	})
	await(t, 10*limit, "the volume is labelled", func() bool { return label(at) == fileType+"s0:c25,c26" })
	holds(t, at, "s0:c25,c26")
}

// TestStoryHook: a hostPath is relabelled by nobody but the hook, and only if the pod
// asks for it.
func TestStoryHook(t *testing.T) {
	need(t)
	create(t, "runtimeclass", nil)
	for relabel, want := range map[string]string{"false": "Permission denied", "true": "read"} {
		at := "/mnt/hook-" + relabel
		makeFiles(t, at, 1)
		if err := os.WriteFile(at+"/f", []byte("read\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		name := "hook-" + relabel
		create(t, "hook", map[string]string{"NAME": name, "RELABEL": relabel, "LEVEL": "s0:c27,c28", "PATH": at})
		keep(t, name)
		awaitRunning(t, name, 6*limit)
		text := ""
		await(t, time.Minute, name+" has read", func() bool { text = said(t, name); return text != "" })
		t.Logf("%s: %q, %s", name, text, label(at))
		if !strings.Contains(text, want) {
			t.Errorf("%s: %q has not %q", name, text, want)
		}
	}
}

// containerd puts another containerd in place of the one that runs, until the test ends.
func containerd(t *testing.T, program string) {
	t.Helper()
	begin := func(program string) {
		if out, err := exec.Command("node", "runtime", program).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	begin(program)
	t.Cleanup(func() { begin("containerd") })
}

// TestStoryDropin: containerd that calls relabel.Relabel in place of label.Relabel, and
// nobody labels beforehand. It cannot leave at the deadline, but it says done only when
// it is.
func TestStoryDropin(t *testing.T) {
	need(t)
	containerd(t, "containerd-dropin")
	newPod(t, "dropin", "data", level("s0:c31,c32"))
	t.Logf("it runs after %v", awaitRunning(t, "dropin", 40*limit))
	wrote(t, "dropin", "s0:c31,c32")
	holds(t, data, "s0:c31,c32")
}

// TestStoryGroup: containerd with a relabel.Group. An attempt whose deadline comes
// leaves, the name is free again, and the next one joins the walk.
func TestStoryGroup(t *testing.T) {
	need(t)
	containerd(t, "containerd-group")
	newPod(t, "group", "data", level("s0:c33,c34"))
	t.Logf("it runs after %v", awaitRunning(t, "group", 40*limit))
	if has(events(t, "group"), "is reserved for") {
		t.Error("an attempt kept the name")
	}
	wrote(t, "group", "s0:c33,c34")
	holds(t, data, "s0:c33,c34")
	text, err := os.ReadFile(run + "/log/containerd")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if strings.Contains(line, "fastlabel: ") {
			t.Log(strings.TrimSpace(line))
		}
	}
}
