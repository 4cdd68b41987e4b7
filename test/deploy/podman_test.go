// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/containers/podman/v5/pkg/systemd/parser"
	"github.com/containers/podman/v5/pkg/systemd/quadlet"
)

const quadletFile = "../../deploy/podman/fastlabel-example.container"

// convert has podman's own generator make a service of a Quadlet, and returns the
// command of the service.
func convert(text string) (string, error) {
	unit := parser.NewUnitFile()
	unit.Filename = "example.container"
	if err := unit.Parse(text); err != nil {
		return "", err
	}
	service, warnings, err := quadlet.ConvertContainer(unit, false, map[string]*quadlet.UnitInfo{"example.container": {ServiceName: "example", ResourceName: "example"}})
	if err == nil {
		err = warnings
	}
	if err != nil {
		return "", err
	}
	made, _, _ := service.LookupLastArgs(quadlet.ServiceGroup, "ExecStart")
	return strings.Join(made, "\x00"), nil
}

// TestQuadlet: podman's own generator takes the Quadlet, knows each key, and makes the
// options of the command in its comment. What the comment offers to add is right too.
func TestQuadlet(t *testing.T) {
	data, err := os.ReadFile(quadletFile)
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	made, err := convert(text)
	if err != nil {
		t.Fatal(err)
	}
	command := regexp.MustCompile(`(?m)^#: (.*)$`).FindStringSubmatch(text)
	if command == nil {
		t.Fatal("no command")
	}
	words, err := exec.Command("bash", "-c", "for w in "+command[1]+"; do printf '%s\\0' \"$w\"; done").Output()
	if err != nil {
		t.Fatal(err)
	}
	got, want := settingsOf(strings.Split(made, "\x00")), settingsOf(strings.Split(string(words), "\x00"))
	if !slices.Equal(got, want) || len(got) != 3 || !slices.Contains(got, "--security-opt label=level:s0:c10,c20") {
		t.Errorf("the Quadlet makes\n%q\nthe command has\n%q", got, want)
	}
	if !slices.Contains(readAsks(t).own, "io.fastlabel.relabel") || !slices.Contains(readAsks(t).own, "io.fastlabel.shared") {
		t.Error("the hook does not read its annotations")
	}
	for line, makes := range map[string]string{
		"Annotation=io.fastlabel.shared=true":       "--annotation io.fastlabel.shared=true",
		"SecurityLabelFileType=TYPE":                "--security-opt label=filetype:TYPE",
		"PodmanArgs=--security-opt label=user:USER": "--security-opt label=user:USER",
	} {
		if !strings.Contains(strings.Join(strings.Fields(text), " "), line) {
			t.Errorf("no word of %s", line)
		}
		made, err := convert(text + line + "\n")
		if err != nil || !slices.Contains(settingsOf(strings.Split(made, "\x00")), makes) {
			t.Errorf("%s: %v: %q", line, err, made)
		}
	}
	// Each way to break it is noticed by what podman knows.
	for old, broken := range map[string]string{"\nSecurityLabelLevel": "\nSecurityLevel", "\n[Container]": "\n[Containers]", "\nImage=busybox": ""} {
		if _, err := convert(strings.Replace(text, old, broken, 1)); err == nil {
			t.Errorf("%q in place of %q passes", broken, old)
		}
	}
}

// settingsOf are the pairs that matter here, sorted.
func settingsOf(words []string) []string {
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
