// SPDX-License-Identifier: Apache-2.0

package runtimes

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fastlabel/fastlabel/test/treetest"
)

// TestExplainCommand: podman takes the command that explain prints, and makes of
// it what explain says.
func TestExplainCommand(t *testing.T) {
	treetest.Need(t, "root")
	setUp(t)
	if _, err := exec.LookPath("podman"); err != nil {
		treetest.Lack(t, "podman", err)
	}
	dir := t.TempDir()
	out, err := exec.Command(place.hook, "explain", "--output", "podman", "-u", "user_u", "-t", "other_t", "-l", "s0:c10,c20", dir).Output()
	if err != nil {
		t.Fatal(err)
	}
	_, command, _ := strings.Cut(string(out), "\n#: podman run ")
	command, _, found := strings.Cut(command, " IMAGE\n")
	if !found {
		t.Fatalf("no command in\n%s", out)
	}
	podman := "podman --root " + filepath.Join(dir, "root") + " --runroot " + filepath.Join(dir, "run") + " "
	create := podman + "create " + command + " --rootfs " + place.rootfs + " " + guestPath
	id, err := exec.Command("unshare", "-m", "sh", "-ec", create).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v: %s", create, err, id)
	}
	text, err := exec.Command("unshare", "-m", "sh", "-ec", podman+"inspect "+string(id)).Output()
	if err != nil {
		t.Fatal(err)
	}
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
