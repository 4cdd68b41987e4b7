// SPDX-License-Identifier: Apache-2.0

// Package inside has what happens in the cluster: each TestStory… is a story of pods
// and of the labels of their volumes, with its control. It runs in the machine that
// TestCluster boots, after guest/node has started the cluster.
package inside

import (
	"bytes"
	"crypto/tls"
	"embed"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/fastlabel/fastlabel/test/treetest"
)

const (
	run = "/run/k" // as in guest/node
	// That of deploy/kubernetes.
	namespace   = "/api/v1/namespaces/fastlabel"
	jobs        = "/apis/batch/v1/namespaces/fastlabel/jobs"
	deployments = "/apis/apps/v1/namespaces/fastlabel/deployments"
	daemonsets  = "/apis/apps/v1/namespaces/fastlabel/daemonsets"
	admission   = "/apis/admissionregistration.k8s.io/v1/"
)

//go:embed manifests
var manifests embed.FS

// manifest is one of manifests with ${NAME} replaced by its value.
func manifest(name string, values map[string]string) (string, error) {
	text, err := manifests.ReadFile("manifests/" + name + ".yaml")
	out := os.Expand(string(text), func(key string) string {
		value, is := values[key]
		if !is && err == nil {
			err = fmt.Errorf("%s: no value for %s", name, key)
		}
		return value
	})
	return out, err
}

// collections are where objects of a kind are created.
var collections = map[string]string{
	"PersistentVolume":      "/api/v1/persistentvolumes",
	"PersistentVolumeClaim": namespace + "/persistentvolumeclaims",
	"Pod":                   namespace + "/pods",
	"RuntimeClass":          "/apis/node.k8s.io/v1/runtimeclasses",
	"Job":                   jobs,
	"Deployment":            deployments,
	"DaemonSet":             daemonsets,

	"MutatingAdmissionPolicy":        admission + "mutatingadmissionpolicies",
	"MutatingAdmissionPolicyBinding": admission + "mutatingadmissionpolicybindings",
}

var kindLine = regexp.MustCompile(`(?m)^kind: (\w+)$`)

// crio says that the runtime is CRI-O.
var crio = os.Getenv("RUNTIME") == "crio"

// create creates the objects of a manifest.
func create(t *testing.T, name string, values map[string]string) {
	t.Helper()
	if name == "pod" {
		all := map[string]string{"CLASS": "null", "SUBPATH": "", "READONLY": "false", "FSGROUP": ""}
		maps.Copy(all, values)
		values = all
		var annotations []string
		if l := values["PRELABEL"]; l != "" {
			annotations = append(annotations, fmt.Sprintf("io.fastlabel/prelabel: %q", l))
		}
		if crio {
			values["CLASS"] = "fastlabel-volumes"
			annotations = append(annotations, `io.kubernetes.cri-o.TrySkipVolumeSELinuxLabel: "true"`)
		}
		values["ANNOTATIONS"] = "{" + strings.Join(annotations, ", ") + "}"
	}
	text, err := manifest(name, values)
	treetest.Must(t, err)
	for object := range strings.SplitSeq(text, "\n---\n") {
		post(t, object)
	}
}

// post creates an object; the API server takes no field that it does not know.
func post(t *testing.T, object string) {
	t.Helper()
	kind := kindLine.FindStringSubmatch(object)
	if kind == nil {
		t.Fatalf("no kind:\n%s", object)
	}
	if code, said := request("POST", collections[kind[1]]+"?fieldValidation=Strict", object); code != http.StatusCreated {
		t.Fatalf("%d %s\n%s", code, said, object)
	}
}

var client = http.Client{
	Timeout:   time.Minute,
	Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}},
}

// ask asks the API server; what it answers is in to if there is something.
func ask(t *testing.T, method, path string, to any) int {
	t.Helper()
	code, text := request(method, path, "")
	if to != nil && code == http.StatusOK {
		treetest.Must(t, json.Unmarshal(text, to))
	}
	return code
}

// request gives the answer's code and text; for want of an answer 0 and why.
func request(method, path, body string) (int, []byte) {
	r, err := http.NewRequest(method, os.Getenv("API_SERVER")+path, strings.NewReader(body))
	if err != nil {
		return 0, []byte(err.Error())
	}
	r.Header.Set("Authorization", "Bearer secret")
	if body != "" {
		r.Header.Set("Content-Type", "application/yaml")
	}
	a, err := client.Do(r)
	if err != nil {
		return 0, []byte(err.Error())
	}
	defer a.Body.Close()
	text, err := io.ReadAll(a.Body)
	if err != nil {
		return 0, []byte(err.Error())
	}
	return a.StatusCode, text
}

func get(url string) ([]byte, error) {
	a, err := client.Get(url)
	if err != nil {
		return nil, err
	}
	defer a.Body.Close()
	return io.ReadAll(a.Body)
}

// pod is what the stories read of one.
type pod struct {
	Metadata struct{ UID, Name string }
	Status   struct {
		Phase             string
		ContainerStatuses []struct {
			RestartCount int
			State        struct{ Running *struct{} }
		}
	}
}

func (p pod) running() bool {
	for _, c := range p.Status.ContainerStatuses {
		if c.State.Running == nil {
			return false
		}
	}
	return p.Status.Phase == "Running"
}

// await asks once a second until there is what is waited for.
func await(t *testing.T, limit time.Duration, what string, is func() bool) time.Duration {
	t.Helper()
	begin := time.Now()
	for !is() {
		if time.Since(begin) > limit {
			t.Fatalf("not within %v: %s", limit, what)
		}
		time.Sleep(time.Second)
	}
	return time.Since(begin).Round(time.Second)
}

func awaitRunning(t *testing.T, name string, limit time.Duration) time.Duration {
	t.Helper()
	return await(t, limit, name+" runs", func() bool {
		var p pod
		ask(t, "GET", namespace+"/pods/"+name, &p)
		return p.running()
	})
}

// events are those of an object, in their order, each with how often it came.
func events(t *testing.T, name string) []string {
	t.Helper()
	var list struct {
		Items []struct {
			Reason, Message string
			Count           int
		}
	}
	ask(t, "GET", namespace+"/events?fieldSelector=involvedObject.name="+name, &list)
	var out []string
	for _, e := range list.Items {
		out = append(out, fmt.Sprintf("%s (%d): %s", e.Reason, max(e.Count, 1), e.Message))
	}
	return out
}

// has reports whether one of the events has the words.
func has(events []string, words string) bool {
	return strings.Contains(strings.Join(events, "\n"), words)
}

// keep makes the pod's events a part of the results, and removes the pod, so that the
// next story finds nobody on the volume.
func keep(t *testing.T, name string) {
	t.Helper()
	t.Cleanup(func() {
		for _, e := range events(t, name) {
			t.Log(name + ": " + e)
		}
		ask(t, "DELETE", namespace+"/pods/"+name+"?gracePeriodSeconds=0", nil)
		await(t, 5*time.Minute, name+" is gone", func() bool {
			return ask(t, "GET", namespace+"/pods/"+name, nil) == http.StatusNotFound
		})
	})
}

// podLog is what a container of the pod wrote.
func podLog(t *testing.T, name, container string) string {
	t.Helper()
	files, err := filepath.Glob(run + "/podlogs/fastlabel_" + name + "_*/" + container + "/*.log")
	treetest.Must(t, err)
	var out bytes.Buffer
	for _, f := range files {
		text, err := os.ReadFile(f)
		treetest.Must(t, err)
		for line := range strings.Lines(string(text)) {
			// Time, stream and a flag come before what was written.
			if fields := strings.SplitN(line, " ", 4); len(fields) == 4 {
				out.WriteString(fields[3])
			}
		}
	}
	return out.String()
}

// said is what the app of a pod of manifests wrote. It does so into a volume of its own:
// the machine's policy lets no container write to a pipe of who started it.
func said(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(saidFile(t, name))
	if err != nil {
		return "" // not yet
	}
	return string(text)
}

func saidFile(t *testing.T, name string) string {
	t.Helper()
	var p pod
	ask(t, "GET", namespace+"/pods/"+name, &p)
	return "/var/lib/kubelet/pods/" + p.Metadata.UID + "/volumes/kubernetes.io~empty-dir/said/said"
}
