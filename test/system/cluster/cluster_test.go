// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fastlabel/fastlabel/test/system/selinuxvm"
)

func say(s string) { fmt.Fprintln(os.Stderr, "cluster:", s) }

// TestCluster runs the stories of package inside in the machine with the newest
// kernel. STORY chooses among them.
func TestCluster(t *testing.T) {
	ctx := t.Context()
	programs, err := Build(ctx, say)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	runtime := "containerd"
	files := map[string]string{"bin/kubelet": programs["kubelet"]}
	crio := os.Getenv("CRIO")
	if crio != "" {
		runtime = "crio"
		const oci = house + "/deploy/oci/"
		files["99-fastlabel.conf"], files["fastlabel.json"] = oci+"99-fastlabel.conf", oci+"fastlabel.json"
		for _, name := range []string{"crio", "pinns"} {
			files["bin/"+name] = filepath.Join(crio, name)
		}
	} else {
		for _, name := range []string{"containerd", "containerd-shim-runc-v2", "ctr"} {
			files["bin/"+name] = programs[name]
		}
		say("building " + patchedName)
		if files["bin/"+patchedName], err = BuildPatched(ctx, dir); err != nil {
			t.Fatal(err)
		}
	}
	files["bin/node"], files["bin/"+runtime+".sh"] = "guest/node", "guest/"+runtime+".sh"
	files["bin/fastlabel"], files["inside.test"] = filepath.Join(dir, "fastlabel"), filepath.Join(dir, "inside.test")
	if _, err := goRun(ctx, house, "build", "-trimpath", "-ldflags=-s -w", "-o", files["bin/fastlabel"], "./cmd/fastlabel"); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"image", "image-nri"} {
		files[name] = filepath.Join(dir, name)
	}
	say("making the images")
	make := exec.CommandContext(ctx, "make", "-C", house, "image", "image-nri", "VERSION=1", "IMAGE="+files["image"], "NRI_IMAGE="+files["image-nri"])
	if out, err := make.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if _, err := goRun(ctx, "", "test", "-c", "-o", files["inside.test"], "./inside"); err != nil {
		t.Fatal(err)
	}
	image, err := selinuxvm.Prepare(ctx, say)
	if err != nil {
		t.Fatal(err)
	}

	say("starting the control plane")
	c := startControl(t, programs, "kube-controller-manager", "kube-scheduler")
	files["cert"], files["key"] = c.cert, c.key
	const manifests = house + "/deploy/kubernetes/"
	if _, err := c.kubectl("apply", "-k", manifests+runtime, "-l", "app.kubernetes.io/component=setup"); err != nil {
		t.Fatal(err)
	}
	if _, err := c.kubectl("apply", "-n", "fastlabel-nri", "-f", manifests+"nri/setup.yaml"); err != nil {
		t.Fatal(err)
	}
	if _, err := c.kubectl("annotate", "namespace", "fastlabel", "openshift.io/sa.scc.mcs=s0:c51,c52"); err != nil {
		t.Fatal(err)
	}
	for file, dir := range map[string]string{"deployed.yaml": runtime, "deployed-nri.yaml": "nri"} {
		text, err := c.kubectl("kustomize", manifests+dir)
		if err != nil {
			t.Fatal(err)
		}
		files[file] = c.write(t, file, string(text))
	}

	kernel := image.Kernels[len(image.Kernels)-1]
	say("booting Linux " + kernel.Release)
	r, err := image.Run(ctx, kernel, selinuxvm.Command{
		// A container's process may not write to a pipe of a higher level than its own.
		Args: []string{
			"runcon", "unconfined_u:unconfined_r:unconfined_t:s0", "bash", "-c",
			`bin/node && PATH=/payload/bin:$PATH /payload/inside.test -test.v -test.timeout=2h -test.run="$STORY"; code=$?; tail -n 30 /run/k/log/* >&2; exit $code`,
		},
		Env: []string{
			"RUNTIME=" + runtime, "API_SERVER=" + c.inside, "STORY=^TestStory(" + os.Getenv("STORY") + ")",
		},
		Files:   files,
		Timeout: 2 * time.Hour,
		Memory:  4000,
		Volume:  4096,
		Network: true,
	})
	text := r.Stdout + "\nrefused by the policy:\n" + r.Refusals()
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, text, r.Stderr)
	}
	if t.Log(text); r.Exit != 0 || !strings.Contains(r.Stdout, "--- PASS: TestStory") {
		t.Errorf("exit code %d\n%s", r.Exit, r.Stderr)
	}
	t.Logf("booted in %v, ran for %v", r.Boot.Round(time.Second), r.Took.Round(time.Second))
}

// TestAccepted: a kube-apiserver takes all of deploy/kubernetes.
func TestAccepted(t *testing.T) {
	programs, err := Build(t.Context(), say)
	if err != nil {
		t.Fatal(err)
	}
	c := startControl(t, programs)
	cmd := exec.Command("../../manifests.sh")
	cmd.Env = append(os.Environ(), "KUBECTL="+programs["kubectl"], "KUBECONFIG="+filepath.Join(c.dir, "kubeconfig"), "KUBECACHEDIR="+c.dir)
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Fatal(err)
	}
}
