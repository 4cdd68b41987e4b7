// SPDX-License-Identifier: Apache-2.0

package inside

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestStoryShared: two pods of one level share the volume.
func TestStoryShared(t *testing.T) {
	need(t)
	const l = "s0:c57,c58"
	job(t, l, func() {})
	starts(t, "one", data, l)
	starts(t, "two", data, l)
}

// TestStoryRandom: a pod without a level gets another one at each start, so nothing
// that was done beforehand is right. The runtime labels each time.
func TestStoryRandom(t *testing.T) {
	at := small(t, "random")
	var seen []string
	for _, name := range []string{"random-1", "random-2"} {
		newPod(t, name, "random", "{}")
		awaitRunning(t, name, patience)
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
	create(t, "pod", map[string]string{"NAME": "sub", "CLAIM": "sub", "OPTIONS": level("s0:c21,c22"), "SUBPATH": "0"})
	keep(t, "sub")
	awaitRunning(t, "sub", patience)
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
	values := map[string]string{"CLAIM": "ro", "OPTIONS": level("s0:c23,c24"), "READONLY": "true"}
	before := label(at)
	for _, name := range []string{"ro-before", "ro-after"} {
		values["NAME"] = name
		create(t, "pod", values)
		keep(t, name)
		awaitRunning(t, name, patience)
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

// TestStoryNamespace: the level is the namespace's. Of OpenShift there is its annotation,
// and in place of its admission a policy that gives pods that level.
func TestStoryNamespace(t *testing.T) {
	need(t)
	var space struct {
		Metadata struct{ Annotations map[string]string }
	}
	ask(t, "GET", namespace, &space)
	l := space.Metadata.Annotations["openshift.io/sa.scc.mcs"]
	create(t, "namespace", nil)
	t.Cleanup(func() {
		ask(t, "DELETE", admission+"mutatingadmissionpolicybindings/level", nil)
		ask(t, "DELETE", admission+"mutatingadmissionpolicies/level", nil)
	})
	const asked = "apiVersion: v1\nkind: Pod\nmetadata: {name: asked}\nspec: {containers: [{name: app, image: none}], serviceAccountName: fastlabel}\n"
	await(t, time.Minute, "a pod gets the namespace's level", func() bool {
		_, text := request("POST", namespace+"/pods?dryRun=All", asked)
		return strings.Contains(string(text), `"seLinuxOptions":{"level":"`+l+`"}`)
	})
	job(t, l, func() {})
	startsWith(t, "namespace", data, "{}", l)
}
