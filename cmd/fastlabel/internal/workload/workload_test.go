// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
)

const level = "s0:c10,c20"

func TestRead(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want Pods
	}{
		"no level": {
			`{kind: Pod, metadata: {name: p}, spec: {containers: [{name: a}]}}`,
			Pods{[]Container{{"Pod p", "a", Asks{}}}, nil},
		},
		"of the pod": {`
kind: Pod
metadata: {generateName: p-, annotations: {io.kubernetes.cri-o.TrySkipVolumeSELinuxLabel: "true"}}
spec:
  runtimeClassName: fastlabel-volumes
  securityContext: {seLinuxOptions: {level: "s0:c10,c20", user: user_u}, seLinuxChangePolicy: Recursive, runAsUser: 5}
  initContainers: [{name: first}]
  containers: [{name: a, image: x}]
`, Pods{[]Container{
			{"Pod p-", "first", Asks{User: "user_u", Level: level, TrySkip: true, Recursive: true, RuntimeClass: "fastlabel-volumes"}},
			{"Pod p-", "a", Asks{User: "user_u", Level: level, TrySkip: true, Recursive: true, RuntimeClass: "fastlabel-volumes"}},
		}, nil}},
		"containers of their own": {`
kind: Deployment
metadata: {name: web}
spec:
  template:
    metadata: {annotations: {try-skip-volume-selinux-label.crio.io: "false"}}
    spec:
      securityContext: {seLinuxOptions: {level: "s0:c10,c20"}}
      containers:
      - {name: other, securityContext: {seLinuxOptions: {level: "s0:c1"}}}
      - {name: typed, securityContext: {seLinuxOptions: {type: container_init_t}}}
      - {name: empty, securityContext: {seLinuxOptions: {}}}
      - {name: mighty, securityContext: {privileged: true}}
      - {name: mightier, securityContext: {privileged: true, seLinuxOptions: {type: spc_t, level: "s0:c1"}}}
      - {name: super, securityContext: {seLinuxOptions: {type: spc_t}}}
`, Pods{[]Container{
			{"Deployment web", "other", Asks{Level: "s0:c1"}},
			{"Deployment web", "typed", Asks{Level: level, Type: "container_init_t", ContainerdDraws: true}},
			{"Deployment web", "empty", Asks{Level: level}},
			{"Deployment web", "mighty", Asks{Level: level}},
			{"Deployment web", "mightier", Asks{Level: "s0:c1", Type: "spc_t", LeftByCRIO: "the container is of the type spc_t"}},
			{"Deployment web", "super", Asks{Level: level, Type: "spc_t", ContainerdDraws: true, LeftByCRIO: "the container is of the type spc_t"}},
		}, nil}},
		"documents, lists, others": {`---
---
kind: Service
---
apiVersion: v1
kind: List
items:
- {kind: CronJob, metadata: {name: c}, spec: {jobTemplate: {spec: {template: {spec: {containers: [{name: a}]}}}}}}
- {kind: Service}
- {kind: Rollout}
---
{"kind":"PodTemplate","metadata":{"name":"t"},"template":{"spec":{"hostPID":true,"containers":[{"name":"a"}]}}}
`, Pods{[]Container{{"CronJob c", "a", Asks{}}, {"PodTemplate t", "a", Asks{}}}, []string{"Service", "Rollout"}}},
		"anchors": {`
kind: Pod
metadata: {name: p}
spec:
  securityContext: {seLinuxOptions: &o {level: "s0:c10,c20"}}
  containers: [{name: a, securityContext: {seLinuxOptions: *o}}]
`, Pods{[]Container{{"Pod p", "a", Asks{Level: level}}}, nil}},
		"merge keys, of a pod and below": {`
kind: PodTemplate
metadata: {name: base}
template: &base
  metadata: &annotated {annotations: {try-skip-volume-selinux-label.crio.io: "true"}}
  spec: &spec
    runtimeClassName: r
    securityContext: &fixed {seLinuxOptions: &o {level: "s0:c10,c20", user: user_u}}
    containers: [{name: a}]
---
kind: List
common: &common
  spec: {template: &t {metadata: {annotations: {try-skip-volume-selinux-label.crio.io: "true"}}, spec: &s {runtimeClassName: r, containers: [{name: a, securityContext: {seLinuxOptions: &l {level: "s0:c1", user: user_u}}}]}}}
items: &items
- {<<: *common, kind: Deployment, metadata: {name: whole}}
- {kind: Job, metadata: {name: part}, spec: {template: {<<: *t, spec: {<<: *s, containers: [{name: b, securityContext: {seLinuxOptions: {<<: [*l], level: "s0:c2"}}}]}}}}
- &pod {kind: Pod, metadata: {name: p}, spec: *s}
- *pod
---
{kind: List, items: &i [{kind: Pod, metadata: {name: q}, spec: {containers: [{name: a}]}}], metadata: {}}
`, Pods{[]Container{
			{"PodTemplate base", "a", Asks{User: "user_u", Level: level, TrySkip: true, RuntimeClass: "r"}},
			{"Deployment whole", "a", Asks{User: "user_u", Level: "s0:c1", TrySkip: true, RuntimeClass: "r"}},
			{"Job part", "b", Asks{User: "user_u", Level: "s0:c2", TrySkip: true, RuntimeClass: "r"}},
			{"Pod p", "a", Asks{User: "user_u", Level: "s0:c1", RuntimeClass: "r"}},
			{"Pod p", "a", Asks{User: "user_u", Level: "s0:c1", RuntimeClass: "r"}},
			{"Pod q", "a", Asks{}},
		}, nil}},
		"a list behind an alias": {`
kind: PodList
metadata: {managedFields: &i [{kind: Pod, metadata: {name: q}, spec: {containers: [{name: a}]}}]}
items: *i
`, Pods{[]Container{{"Pod q", "a", Asks{}}}, nil}},
	} {
		if got, err := Read([]byte(c.text)); err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, %v\nand not %+v", name, got, err, c.want)
		}
	}
	for _, kind := range []string{"StatefulSet", "DaemonSet", "ReplicaSet", "Job", "ReplicationController", "DeploymentConfig"} {
		got, err := Read(fmt.Appendf(nil, "kind: %s\nmetadata: {name: x}\nspec: {template: {spec: {containers: [{name: a}]}}}", kind))
		if err != nil || len(got.Containers) != 1 || got.Containers[0].Pod != kind+" x" {
			t.Errorf("%s: %+v, %v", kind, got, err)
		}
	}
}

// What Kubernetes would pass over, or refuse, is an error here.
func TestReadErrors(t *testing.T) {
	pod := func(spec string) string { return "kind: Pod\nmetadata: {name: p}\nspec: " + spec }
	for text, want := range map[string]string{
		"":                                 "it holds no pod",
		"kind: Service":                    "it holds no pod: Service",
		"a: b":                             "line 1: an object without a kind",
		"- a":                              "line 1: not a Kubernetes object",
		"kind: [":                          "did not find expected node content",
		"kind: Pod\nkind: Pod":             `mapping key "kind" already defined`,
		pod("{}"):                          "Pod p: it has no containers",
		"kind: Deployment":                 "Deployment: it has no spec.template",
		pod("{containers: {}}"):            "cannot unmarshal",
		"kind: Pod\nmetadata: {name: [x]}": "cannot unmarshal",
		pod("{securityContext: {selinuxOptions: {level: s0}}, containers: [{name: a}]}"):                                      `Pod p: securityContext has no field "selinuxOptions"; it is seLinuxOptions`,
		pod("{containers: [{name: a, securityContext: {SELinuxOptions: {}}}]}"):                                               `Pod p, container a: securityContext has no field "SELinuxOptions"`,
		pod("{securityContext: {seLinuxOptions: {lvl: s0}}, containers: [{name: a}]}"):                                        `seLinuxOptions has no field "lvl"`,
		"a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: *c\nkind: Pod": "",
	} {
		if got, err := Read([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %+v, %v, and not %q", text, got, err, want)
		}
	}
}

// What would cost package yaml hours or gigabytes is refused before it is decoded: a
// text of half a MiB with as many documents, keys, kinds or aliases as it can hold.
func TestHostile(t *testing.T) {
	const pod = "{kind: Pod, spec: {containers: [{name: a}]}}"
	fill := func(before, each, after string) string {
		return before + strings.Repeat(each, (1<<19-len(before)-len(after))/len(each)) + after
	}
	numbered := func(format string) string {
		var b strings.Builder
		for i := 0; b.Len() < 1<<19; i++ {
			fmt.Fprintf(&b, format, i)
		}
		return b.String()
	}
	for name, c := range map[string]struct{ text, want string }{
		"documents":       {fill("", "---\n", ""), "more than 200000 values"},
		"kinds":           {numbered("--- {kind: %d} # as many as fit\n"), "it holds no pod: 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19"},
		"keys":            {numbered("%d:\n"), "line 1: a mapping of more than 1000 keys"},
		"one key":         {"a:\na:\n", `line 2: mapping key "a" already defined at line 1`},
		"a list":          {fill("[", "a,", "]"), "more than 200000 values"},
		"deep":            {fill("", "[", ""), "exceeded max depth"},
		"aliases":         {fill("kind: List\nx: &a "+pod+"\nitems: [", "*a,", "]"), "more than 200000 values"},
		"aliases of much": {fill("kind: List\nitems: [&a {kind: Pod, spec: {containers: ["+strings.Repeat("{name: a},", 20_000)+"]}},", "*a,", "]"), "more than 200000 values"},
		"merges":          {fill("kind: Pod\na: &a {a: b}\n<<: [", "*a,", "]"), "more than 200000 values"},
		"itself":          {"kind: Pod\nspec: &a {containers: [*a]}", `line 2: "a" contains itself`},
		"its own spec":    {"kind: Pod\nspec: &a {<<: *a, containers: []}", "contains itself"},
	} {
		if _, err := Read([]byte(c.text)); err == nil || !strings.Contains(err.Error(), c.want) || len(err.Error()) > 200 {
			t.Errorf("%s: %.300v, and not %q", name, err, c.want)
		}
	}
}

// The example that is shipped has a level.
func TestExample(t *testing.T) {
	text, err := os.ReadFile("../../../../deploy/oci/pod.yaml")
	if err != nil {
		t.Fatal(err)
	}
	want := []Container{{"Pod fastlabel-example", "app", Asks{Level: level, TrySkip: true, RuntimeClass: "fastlabel-volumes"}}}
	if got, err := Read(text); err != nil || !reflect.DeepEqual(got.Containers, want) {
		t.Errorf("%+v, %v", got, err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte("kind: Pod\nspec: {containers: [{name: a}]}"))
	f.Add([]byte("kind: List\nitems: [{kind: Job}]\n---\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		pods, err := Read(text)
		if err == nil && len(pods.Containers) == 0 {
			t.Error("neither a pod nor an error")
		}
	})
}
