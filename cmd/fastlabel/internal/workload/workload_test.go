// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
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
			`{"kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [{"name": "a"}]}}`,
			Pods{[]Container{{"Pod p", "a", Asks{}}}, nil},
		},
		"of the pod": {`{"kind": "Pod",
"metadata": {"generateName": "p-", "annotations": {"io.kubernetes.cri-o.TrySkipVolumeSELinuxLabel": "true"}},
"spec": {
  "runtimeClassName": "fastlabel-volumes",
  "securityContext": {"seLinuxOptions": {"level": "s0:c10,c20", "user": "user_u"}, "seLinuxChangePolicy": "Recursive", "runAsUser": 5},
  "initContainers": [{"name": "first"}],
  "containers": [{"name": "a", "image": "x"}]}}`, Pods{[]Container{
			{"Pod p-", "first", Asks{User: "user_u", Level: level, TrySkip: true, Recursive: true, RuntimeClass: "fastlabel-volumes"}},
			{"Pod p-", "a", Asks{User: "user_u", Level: level, TrySkip: true, Recursive: true, RuntimeClass: "fastlabel-volumes"}},
		}, nil}},
		"containers of their own": {`{"kind": "Deployment", "metadata": {"name": "web"}, "spec": {"template": {
"metadata": {"annotations": {"try-skip-volume-selinux-label.crio.io": "false"}},
"spec": {"securityContext": {"seLinuxOptions": {"level": "s0:c10,c20"}}, "containers": [
  {"name": "other", "securityContext": {"seLinuxOptions": {"level": "s0:c1"}}},
  {"name": "typed", "securityContext": {"seLinuxOptions": {"type": "container_init_t"}}},
  {"name": "empty", "securityContext": {"seLinuxOptions": {}}},
  {"name": "mighty", "securityContext": {"privileged": true}},
  {"name": "mightier", "securityContext": {"privileged": true, "seLinuxOptions": {"type": "spc_t", "level": "s0:c1"}}},
  {"name": "super", "securityContext": {"seLinuxOptions": {"type": "spc_t"}}}]}}}}`, Pods{[]Container{
			{"Deployment web", "other", Asks{Level: "s0:c1"}},
			{"Deployment web", "typed", Asks{Level: level, Type: "container_init_t", ContainerdDraws: true}},
			{"Deployment web", "empty", Asks{Level: level}},
			{"Deployment web", "mighty", Asks{Level: level}},
			{"Deployment web", "mightier", Asks{Level: "s0:c1", Type: "spc_t", LeftByCRIO: "the container is of the type spc_t"}},
			{"Deployment web", "super", Asks{Level: level, Type: "spc_t", ContainerdDraws: true, LeftByCRIO: "the container is of the type spc_t"}},
		}, nil}},
		"objects, lists, others": {
			`{"kind": "Service", "spec": {"ports": []}}
{"apiVersion": "v1", "kind": "List", "items": [
  {"kind": "CronJob", "metadata": {"name": "c"}, "spec": {"jobTemplate": {"spec": {"template": {"spec": {"containers": [{"name": "a"}]}}}}}},
  {"kind": "Service"}, {"kind": "ConfigMap"}]}
{"kind": "PodTemplate", "metadata": {"name": "t"}, "template": {"spec": {"hostPID": true, "containers": [{"name": "a"}]}}}
{"kind": "PodList", "items": []}`,
			Pods{[]Container{{"CronJob c", "a", Asks{}}, {"PodTemplate t", "a", Asks{}}}, []string{"Service", "ConfigMap"}},
		},
	} {
		if got, err := Read([]byte(c.text)); err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, %v\nand not %+v", name, got, err, c.want)
		}
	}
	for _, kind := range []string{"StatefulSet", "DaemonSet", "ReplicaSet", "Job", "ReplicationController", "DeploymentConfig"} {
		got, err := Read(fmt.Appendf(nil, `{"kind": %q, "metadata": {"name": "x"}, "spec": {"template": {"spec": {"containers": [{"name": "a"}]}}}}`, kind))
		if err != nil || len(got.Containers) != 1 || got.Containers[0].Pod != kind+" x" {
			t.Errorf("%s: %+v, %v", kind, got, err)
		}
	}
}

func TestReadErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":                                   "it holds no pod",
		`{"kind": "Service"}`:                "it holds no pod: Service",
		`{"kind": "Deployment", "spec": {}}`: "it holds no pod: Deployment",
		`{"kind": "List", "items": []}`:      "it holds no pod",
		`{"a": "b"}`:                         "it holds no pod",
		`["a"]`:                              "no Kubernetes object in JSON: ",
		"kind: Pod":                          "to have one: kubectl get -o json",
		`{"kind": "Pod"`:                     "unexpected EOF",
		`{"kind": "Pod", "metadata": {"name": "p"}}`:            "Pod p: it has no containers",
		`{"kind": "Pod", "spec": {"containers": {}}}`:           "cannot unmarshal",
		`{"kind": "List", "items": [{"kind": "Pod", "spec": 1}`: "no Kubernetes object in JSON: ",
	} {
		if got, err := Read([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %+v, %v, and not %q", text, got, err, want)
		}
	}
}

// A text that nests or repeats as much as it can is an error, or read, in the end.
func TestHostile(t *testing.T) {
	const most = 1 << 20
	fill := func(before, each, after string) string {
		return before + strings.Repeat(each, (most-len(before)-len(after))/len(each)) + after
	}
	for name, c := range map[string]struct{ text, want string }{
		"lists in lists": {fill("", `{"kind":"List","items":[`, ""), "exceeded max depth"},
		"arrays":         {fill(`{"items":`, "[", ""), "exceeded max depth"},
		"kinds":          {fill("", `{"kind":"a"}`, ""), "it holds no pod: a"},
		"items":          {fill(`{"kind":"List","items":[`, "{},", "{}]}"), "it holds no pod"},
		"keys":           {fill(`{"a":1`, `,"kind":"a"`, "}"), "it holds no pod: a"},
	} {
		if _, err := Read([]byte(c.text)); err == nil || !strings.Contains(err.Error(), c.want) || len(err.Error()) > 200 {
			t.Errorf("%s: %.300v, and not %q", name, err, c.want)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"kind":"Pod","spec":{"containers":[{"name":"a"}]}}`))
	f.Add([]byte(`{"kind":"List","items":[{"kind":"Job"}]}{}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		pods, err := Read(text)
		if err == nil && len(pods.Containers) == 0 {
			t.Error("neither a pod nor an error")
		}
	})
}
