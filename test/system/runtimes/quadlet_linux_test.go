// SPDX-License-Identifier: Apache-2.0

package runtimes

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fastlabel/fastlabel/test/treetest"
)

// TestQuadletCommand: podman takes the command in the comment of deploy's Quadlet, and
// makes of it what the comment says. The Quadlet has the same settings.
func TestQuadletCommand(t *testing.T) {
	treetest.Need(t, "root", "podman")
	setUp(t)
	dir := t.TempDir()
	text, err := os.ReadFile("../../../deploy/podman/fastlabel-example.container")
	treetest.Must(t, err)
	for _, line := range []string{"Volume=/srv/volume:/data", "Annotation=io.fastlabel.relabel=/data", "SecurityLabelLevel=s0:c10,c20"} {
		if !strings.Contains(string(text), "\n"+line+"\n") {
			t.Errorf("no line %s", line)
		}
	}
	_, command, _ := strings.Cut(string(text), "\n#: podman run ")
	command, _, found := strings.Cut(command, " busybox sleep infinity\n")
	if !found {
		t.Fatalf("no command in\n%s", text)
	}
	command = strings.Replace(command, "/srv/volume:", dir+":", 1)
	podman := "podman --root " + filepath.Join(dir, "root") + " --runroot " + filepath.Join(dir, "run") + " "
	create := podman + "create " + command + " --security-opt label=filetype:other_t --security-opt label=user:user_u --rootfs " + place.rootfs + " " + guestPath
	id := treetest.Output(t, exec.Command("unshare", "-m", "sh", "-ec", create))
	text, err = exec.Command("unshare", "-m", "sh", "-ec", podman+"inspect "+id).Output()
	treetest.Must(t, err)
	var all []struct {
		Config     struct{ Annotations map[string]string }
		Mounts     []struct{ Source, Destination string }
		HostConfig struct{ SecurityOpt []string }
	}
	if err := json.Unmarshal(text, &all); err != nil || len(all) != 1 {
		t.Fatalf("%v: %s", err, text)
	}
	c := all[0]
	if c.Config.Annotations[askRelabel] != "/data" || len(c.Mounts) != 1 || c.Mounts[0].Source != dir || c.Mounts[0].Destination != "/data" {
		t.Errorf("%+v", c)
	}
	given := strings.Join(c.HostConfig.SecurityOpt, ",")
	for _, option := range []string{"level:s0:c10,c20", "filetype:other_t", "user:user_u"} {
		if !strings.Contains(given, option) {
			t.Errorf("%s is not in %s", option, given)
		}
	}
}
