// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/containers/podman/v5/pkg/systemd/parser"
	"github.com/containers/podman/v5/pkg/systemd/quadlet"
	corev1 "k8s.io/api/core/v1"
)

// explain runs `fastlabel explain`, and returns what it prints.
func explain(t *testing.T, program string, args ...string) string {
	t.Helper()
	out, err := exec.Command(program, append([]string{"explain"}, args...)...).Output()
	if err != nil {
		t.Fatalf("explain %q: %v", args, err)
	}
	return string(out)
}

func build(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "fastlabel")
	cmd := exec.Command("go", "build", "-o", program, "./cmd/fastlabel")
	cmd.Dir = "../.."
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return program
}

// commented is what stands behind "#: ".
func commented(text string) string {
	var b strings.Builder
	for _, line := range regexp.MustCompile(`(?m)^#: (.*)$`).FindAllStringSubmatch(text, -1) {
		b.WriteString(line[1] + "\n")
	}
	return b.String()
}

// TestExplainCRIO: the drop-in and its class pass the checks of deploy/oci's.
func TestExplainCRIO(t *testing.T) {
	text := explain(t, build(t), "--output", "crio", t.TempDir())
	h, found := checkDropIn(t, text, readAsks(t))
	_, more := checkClass(commented(text), h)
	if len(found)+len(more) > 0 || h.removes("io.kubernetes.cri-o.TrySkipVolumeSELinuxLabel") {
		t.Errorf("%s\n%q %q", text, found, more)
	}
	shipped, _ := checkDropIn(t, readFiles(t)[dropInFile], readAsks(t))
	if h.name != shipped.name || !slices.Equal(h.AllowedAnnotations, shipped.AllowedAnnotations) {
		t.Errorf("deploy/oci has %+v, and explain %+v", shipped, h)
	}
}

// labels are what a pod and a container can ask for.
var labels = []struct{ args, user, filetype, level string }{
	{"-l s0:c10,c20", "", "", "s0:c10,c20"},
	{"-l s0:c20,c10", "", "", "s0:c10,c20"},
	{"-l s0", "", "", "s0"},
	{"-u user_u -l s0:c0.c1023", "user_u", "", "s0:c0.c1023"},
	{"-t svirt_lxc_file_t -l s0:c1", "", "svirt_lxc_file_t", "s0:c1"},
}

// TestExplainKubernetes: the pod passes the checks of deploy/oci's, and fastlabel
// reads the label out of it that it was made for.
func TestExplainKubernetes(t *testing.T) {
	program, dir, a := build(t), t.TempDir(), readAsks(t)
	f := readFiles(t)
	h, _ := checkDropIn(t, f[dropInFile], a)
	class, _ := checkClass(f[classFile], h)
	for _, l := range labels {
		f[podFile] = explain(t, program, append(strings.Fields("--output kubernetes "+l.args), dir)...)
		for _, fault := range checkPod(t, f, h, class, a) {
			if !strings.Contains(fault, "is not as the kernel writes it") || strings.Count(l.level, ",") == 1 { // that asks for two categories
				t.Errorf("%s: %s\n%s", l.args, fault, f[podFile])
			}
		}
		p := new(corev1.Pod)
		var found faults
		decode(&found, f, podFile, p, &p.TypeMeta, "v1 Pod")
		if o := p.Spec.SecurityContext.SELinuxOptions; o.Level != l.level || o.User != l.user || o.Type != "" || o.Role != "" {
			t.Errorf("%s: %+v", l.args, o)
		}
		file := filepath.Join(t.TempDir(), "pod.yaml")
		if err := os.WriteFile(file, []byte(f[podFile]), 0o600); err != nil {
			t.Fatal(err)
		}
		args := []string{"--output", "kubernetes", "--for", file}
		if l.filetype != "" {
			args = append(args, "-t", l.filetype)
		}
		if again := explain(t, program, append(args, dir)...); again != f[podFile] {
			t.Errorf("%s: --for makes of\n%s\nthis:\n%s", l.args, f[podFile], again)
		}
	}
}

// TestExplainPodman: podman's own generator takes the Quadlet, knows each key, and
// makes the options of the command in its comment.
func TestExplainPodman(t *testing.T) {
	program := build(t)
	dir := filepath.Join(t.TempDir(), "my volume")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, l := range labels {
		text := explain(t, program, append(strings.Fields("--output podman "+l.args), dir)...)
		unit := parser.NewUnitFile()
		unit.Filename = "example.container"
		if err := unit.Parse(text); err != nil {
			t.Fatalf("%v:\n%s", err, text)
		}
		service, warnings, err := quadlet.ConvertContainer(unit, false, map[string]*quadlet.UnitInfo{"example.container": {ServiceName: "example", ResourceName: "example"}})
		if err != nil || warnings != nil {
			t.Fatalf("%v, %v:\n%s", err, warnings, text)
		}
		made, _, _ := service.LookupLastArgs(quadlet.ServiceGroup, "ExecStart")
		words, err := exec.Command("bash", "-c", "for w in "+strings.TrimSpace(commented(text))+"; do printf '%s\\0' \"$w\"; done").Output()
		if err != nil {
			t.Fatal(err)
		}
		command := strings.Split(strings.TrimSuffix(string(words), "\x00"), "\x00")
		if got, want := options(made), options(command); !slices.Equal(got, want) || len(got) == 0 {
			t.Errorf("%s: the Quadlet makes\n%q\nthe command has\n%q", l.args, got, want)
		}
		var given []string
		for _, o := range options(command) {
			if option, is := strings.CutPrefix(o, "--security-opt label="); is {
				given = append(given, option)
			}
		}
		want := map[bool][]string{false: {"level:" + l.level}, true: nil}[l.level == "s0"]
		if l.filetype != "" {
			want = append(want, "filetype:"+l.filetype)
		}
		if l.user != "" {
			want = append(want, "user:"+l.user)
		}
		slices.Sort(given)
		slices.Sort(want)
		if !slices.Equal(given, want) {
			t.Errorf("%s: %q, not %q", l.args, given, want)
		}
	}
}

// options are the pairs that matter here, sorted.
func options(words []string) []string {
	var all []string
	for i, w := range words {
		for _, name := range []string{"--security-opt", "--annotation", "-v"} {
			if w == name && i+1 < len(words) {
				all = append(all, w+" "+words[i+1])
			} else if value, is := strings.CutPrefix(w, name+"="); is {
				all = append(all, name+" "+value)
			}
		}
	}
	slices.Sort(all)
	return all
}

// Each way to break a Quadlet is noticed by what podman knows.
func TestExplainPodmanBroken(t *testing.T) {
	text := explain(t, build(t), "--output", "podman", "-l", "s0:c1,c2", t.TempDir())
	for old, broken := range map[string]string{"SecurityLabelLevel": "SecurityLevel", "[Container]": "[Containers]", "Image=IMAGE": ""} {
		unit := parser.NewUnitFile()
		unit.Filename = "example.container"
		err := unit.Parse(strings.Replace(text, old, broken, 1))
		if err == nil {
			var warnings error
			_, warnings, err = quadlet.ConvertContainer(unit, false, map[string]*quadlet.UnitInfo{"example.container": {ServiceName: "example"}})
			if err == nil {
				err = warnings
			}
		}
		if err == nil {
			t.Errorf("%q in place of %q passes", broken, old)
		}
	}
}
