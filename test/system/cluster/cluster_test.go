// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fastlabel/fastlabel/test/system/selinuxvm"
	"github.com/fastlabel/fastlabel/test/treetest"
)

func say(s string) { fmt.Fprintln(os.Stderr, "cluster:", s) }

// TestCluster runs the stories of package inside in the machine with the newest
// kernel. STORY chooses among them.
func TestCluster(t *testing.T) {
	programs := build(t)
	dir := t.TempDir()
	runtime := "containerd"
	files := map[string]string{"bin/kubelet": programs["kubelet"]}
	crio := os.Getenv("CRIO")
	if crio != "" {
		runtime = "crio"
		const oci = house + "/deploy/oci/"
		files["99-fastlabel.conf"], files["fastlabel.json"] = oci+"99-fastlabel.conf", oci+"fastlabel.json"
		for _, name := range []string{"crio", "crio-group", "pinns"} {
			files["bin/"+name] = filepath.Join(crio, name)
		}
	} else {
		for _, name := range []string{"containerd", "containerd-shim-runc-v2", "ctr"} {
			files["bin/"+name] = programs[name]
		}
		say("building " + patchedName)
		files["bin/"+patchedName] = buildPatched(t, dir)
	}
	files["bin/node"], files["bin/"+runtime+".sh"] = "guest/node", "guest/"+runtime+".sh"
	files["bin/fastlabel"], files["inside.test"] = filepath.Join(dir, "fastlabel"), filepath.Join(dir, "inside.test")
	goRun(t, house, "build", "-trimpath", "-ldflags=-s -w", "-o", files["bin/fastlabel"], "./cmd/fastlabel")
	for _, name := range []string{"image", "image-nri"} {
		files[name] = filepath.Join(dir, name)
	}
	say("making the images")
	treetest.Output(t, exec.Command("make", "-C", house, "image", "image-nri", "VERSION=1", "IMAGE="+files["image"], "NRI_IMAGE="+files["image-nri"]))
	goRun(t, "", "test", "-c", "-o", files["inside.test"], "./inside")
	image, err := selinuxvm.Prepare(say)
	treetest.Must(t, err)

	say("starting the control plane")
	c := startControl(t, programs, "kube-controller-manager", "kube-scheduler")
	files["cert"], files["key"] = c.cert, c.key
	const manifests = house + "/deploy/kubernetes/"
	for _, args := range [][]string{
		{"apply", "-k", manifests + runtime, "-l", "app.kubernetes.io/component=setup"},
		{"apply", "-n", "fastlabel-nri", "-f", manifests + "nri/setup.yaml"},
		{"annotate", "namespace", "fastlabel", "openshift.io/sa.scc.mcs=s0:c51,c52"},
	} {
		_, err := c.kubectl(args...)
		treetest.Must(t, err)
	}
	for file, dir := range map[string]string{"deployed.yaml": runtime, "deployed-nri.yaml": "nri"} {
		text, err := c.kubectl("kustomize", manifests+dir)
		treetest.Must(t, err)
		files[file] = c.write(t, file, string(text))
	}

	soak, err := time.ParseDuration(cmp.Or(os.Getenv("SOAK"), "0")) // 0: without TestStorySoak
	treetest.Must(t, err)
	limit := 2*time.Hour + soak
	kernel := image.Kernels[len(image.Kernels)-1]
	say("booting Linux " + kernel.Release)
	r := image.Run(t, kernel, selinuxvm.Command{
		// A container's process may not write to a pipe of a higher level than its own.
		Args: []string{
			"runcon", "unconfined_u:unconfined_r:unconfined_t:s0", "bash", "-c",
			`bin/node && PATH=/payload/bin:$PATH /payload/inside.test -test.v -test.timeout="$LIMIT" -test.run="$STORY"; code=$?; tail -n 30 /run/k/log/* >&2; exit $code`,
		},
		Env: []string{
			"RUNTIME=" + runtime, "API_SERVER=" + c.inside, "STORY=^TestStory(" + os.Getenv("STORY") + ")",
			"SOAK=" + soak.String(), "LIMIT=" + limit.String(),
		},
		Files:   files,
		Timeout: limit,
		Memory:  4000,
		Volume:  4096,
		Network: true,
	})
	text := r.Stdout + "\nrefused by the policy:\n" + r.Refusals()
	if t.Log(text); r.Exit != 0 || !strings.Contains(r.Stdout, "--- PASS: TestStory") {
		t.Errorf("exit code %d\n%s", r.Exit, r.Stderr)
	}
	t.Logf("booted in %v, ran for %v", r.Boot.Round(time.Second), r.Took.Round(time.Second))
}

// TestAccepted: a kube-apiserver takes all of deploy/kubernetes.
func TestAccepted(t *testing.T) {
	programs := build(t)
	c := startControl(t, programs)
	cmd := exec.Command("../../manifests.sh")
	cmd.Env = append(os.Environ(), "KUBECTL="+programs["kubectl"], "KUBECONFIG="+filepath.Join(c.dir, "kubeconfig"), "KUBECACHEDIR="+c.dir)
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	treetest.Must(t, err)
}
