// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile("../../../" + file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// find returns what the pattern's group matches in the file, each time it does.
func find(t *testing.T, file, pattern string) (all []string) {
	t.Helper()
	for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(read(t, file), -1) {
		all = append(all, m[1])
	}
	if len(all) == 0 {
		t.Fatalf("%s has nothing like %s", file, pattern)
	}
	return all
}

// Each MachineConfig brings the file of deploy/oci as it is.
func TestMachineConfigs(t *testing.T) {
	for config, file := range map[string]string{"machineconfig": "99-fastlabel.conf", "machineconfig-hook": "fastlabel.json"} {
		data := find(t, "deploy/kubernetes/openshift/"+config+".yaml", `source: data:;base64,(\S+)`)
		if text, err := base64.StdEncoding.DecodeString(data[0]); err != nil || string(text) != read(t, "deploy/oci/"+file) {
			t.Errorf("%s does not bring %s (%v); base64 -w0 has what belongs there", config, file, err)
		}
	}
}

// The manifests give the rights that the unit has, and no others. TestUnitRuns shows that
// each is needed, and that they are enough.
func TestRights(t *testing.T) {
	sorted := func(list, between string) []string { return slices.Sorted(slices.Values(strings.Split(list, between))) }
	want := sorted(strings.ReplaceAll(find(t, unitFile, `(?m)^CapabilityBoundingSet=(.*)$`)[0], "CAP_", ""), " ")
	given := 0
	files, err := filepath.Glob("../../../deploy/kubernetes/*/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		file = strings.TrimPrefix(file, "../../../")
		if !strings.Contains(read(t, file), "add: [") {
			continue
		}
		for _, list := range find(t, file, `add: \[(.*)\]`) {
			if got := sorted(list, ", "); !slices.Equal(got, want) && list != "SYS_ADMIN" { // probe's, which reads
				t.Errorf("%s: %v, and the unit has %v", file, got, want)
			}
			given++
		}
	}
	if given < 4 {
		t.Errorf("only %d lists of rights", given)
	}
}

// The Job tells apart what another try cannot mend and what it resumes, by the command's
// exit codes.
func TestJob(t *testing.T) {
	code := func(name string) string {
		return find(t, "cmd/fastlabel/internal/exit/codes.go", `(?m)^\t`+name+` += (\d+) `)[0]
	}
	want := []string{
		code("Usage") + ", " + code("Refused"),
		code("TimedOut") + ", " + code("Interrupted") + ", " + code("Terminated"),
	}
	if got := find(t, "deploy/kubernetes/base/job-pvc.yaml", `values: \[(.*)\]`); !slices.Equal(got, want) {
		t.Errorf("the Job has the exit codes %q, not %q", got, want)
	}
}

// The runtime's timeout for the hook is when the hook stops by itself, with its margin, and
// before the kubelet gives up, which it does after two minutes.
func TestHookTimeout(t *testing.T) {
	seconds := func(name string) int {
		n, err := strconv.Atoi(find(t, "cmd/fastlabel/hook.go", `(?m)^\t`+name+` = (\d+) \* time.Second$`)[0])
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	var file struct{ Hook struct{ Timeout int } }
	if err := json.Unmarshal([]byte(read(t, "deploy/oci/fastlabel.json")), &file); err != nil {
		t.Fatal(err)
	}
	if want := seconds("hookTimeout") + seconds("hookMargin"); file.Hook.Timeout != want || want >= 120 {
		t.Errorf("timeout %d s, not %d", file.Hook.Timeout, want)
	}
}
