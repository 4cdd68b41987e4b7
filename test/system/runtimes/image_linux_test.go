// SPDX-License-Identifier: Apache-2.0

package runtimes

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/fastlabel/fastlabel/test/treetest"
)

// TestImage: podman loads what make image makes, and starts it with a read-only root and
// the capabilities that deploy/kubernetes gives it. It knows its version, and labels a
// volume; without capabilities it labels nothing.
func TestImage(t *testing.T) {
	const name, version = "localhost/fastlabel", "v1.2.3"
	job, err := os.ReadFile("../../../deploy/kubernetes/base/job-pvc.yaml")
	treetest.Must(t, err)
	rights := regexp.MustCompile(`add: \[([A-Z_, ]+)\]`).FindSubmatch(job)
	if rights == nil {
		t.Fatal("the Job has no capabilities")
	}
	archive := filepath.Join(t.TempDir(), "image")
	treetest.Output(t, exec.Command("make", "-C", house, "image", "VERSION="+version, "IMAGE="+archive))
	const most = 10 << 20
	if info, err := os.Stat(archive); err != nil || info.Size() > most {
		t.Errorf("%v: more than %d bytes: %v", err, most, info.Size())
	}
	for _, e := range engines {
		if e.manager == "" {
			continue
		}
		t.Run(e.String(), func(t *testing.T) {
			e.need(t)
			v, c := disk(t), newContainer(t, e)
			c.writeHooks(t)
			// An owner may set the label where SELinux is in the kernel without a policy.
			treetest.Output(t, exec.Command("chown", "-R", "1000", v.root))
			podman := func(args ...string) (string, error) {
				cmd := c.command(c.podman(args...)...)
				cmd.Env = c.env()
				out, err := cmd.CombinedOutput()
				return string(out), err
			}
			run := func(rights string, args ...string) (string, error) {
				all := []string{
					"run", "--rm", "--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024", "--network=none",
					"--cgroup-parent=" + parent(), "--read-only", "--cap-drop=all", "-v", v.root + ":/volume",
				}
				for right := range strings.SplitSeq(rights, ", ") {
					if right != "" {
						all = append(all, "--cap-add="+right)
					}
				}
				return podman(append(append(all, name+":"+version), args...)...)
			}
			if out, err := podman("load", "-i", archive); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			if out, err := podman("inspect", "--format", `{{index .Labels "org.opencontainers.image.version"}} {{.Architecture}}`, name+":"+version); err != nil || !strings.HasPrefix(out, version+" ") {
				t.Errorf("%v: %s", err, out)
			}
			if out, err := run("", "version"); err != nil || !strings.HasPrefix(out, "fastlabel "+version+" ") {
				t.Errorf("%v: %s", err, out)
			}
			if out, err := run("", "--label", newLabel, "/volume"); err == nil {
				t.Errorf("control: without capabilities it labels: %s", out)
			}
			v.has(t, oldLabel)
			if out, err := run(string(rights[1]), "--label", newLabel, "/volume"); err != nil {
				t.Errorf("%v: %s", err, out)
			}
			v.has(t, newLabel)
		})
	}
}
