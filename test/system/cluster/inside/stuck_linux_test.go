// SPDX-License-Identifier: Apache-2.0

package inside

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// The three cases of docs/stuck-pods.md, each as the page has it.

// TestStoryFsGroup is case 1: the kubelet changes the group of every file, and with
// OnRootMismatch looks at the top directory only.
func TestStoryFsGroup(t *testing.T) {
	at := small(t, "group")
	file := filepath.Join(at, "0", "50")
	for _, c := range []struct {
		pod, policy string
		want        uint32
	}{{"group-first", "", 3000}, {"group-mismatch", ", fsGroupChangePolicy: OnRootMismatch", 0}, {"group-always", "", 3000}} {
		t.Run(c.pod, func(t *testing.T) {
			// The kubelet changes the group when it mounts the volume, if that is mounted for nobody else.
			await(t, patience, "the last pod's mount is gone", func() bool {
				mounts, err := os.ReadFile("/proc/mounts")
				return err == nil && !strings.Contains(string(mounts), "~local-volume/group ")
			})
			if err := os.Chown(file, -1, 0); err != nil {
				t.Fatal(err)
			}
			create(t, "pod", map[string]string{
				"NAME": c.pod, "CLAIM": "group", "OPTIONS": level("s0:c61,c62"), "FSGROUP": ", fsGroup: 3000" + c.policy,
			})
			keep(t, c.pod)
			awaitRunning(t, c.pod, patience)
			var st syscall.Stat_t
			if err := syscall.Stat(file, &st); err != nil || st.Gid != c.want {
				t.Errorf("the file's group is %d, not %d (%v)", st.Gid, c.want, err)
			}
		})
	}
}

// TestStoryBeside is case 2: fastlabel labels the volume while the runtime does.
func TestStoryBeside(t *testing.T) {
	need(t)
	const l = "s0:c63,c64"
	newPod(t, "beside", "data", level(l))
	exceeds(t, "beside")
	var p pod
	ask(t, "GET", namespace+"/pods/beside", &p)
	volumes, err := filepath.Glob("/var/lib/kubelet/pods/" + p.Metadata.UID + "/volumes/*/data")
	if err != nil || len(volumes) != 1 {
		t.Fatal(volumes, err)
	}
	fastlabel(t, "-l", l, volumes[0])
	fastlabel(t, "probe", "-l", l, volumes[0])
	awaitRunning(t, "beside", patience)
	wrote(t, "beside", l)
	holds(t, data, l)
}

// TestStoryNoLevel is case 3: each start has another level, until the pod names one.
func TestStoryNoLevel(t *testing.T) {
	at := small(t, "nolevel")
	node(t, "kubelet", "2m") // the kubelet's own: nothing here is about time
	defer node(t, "kubelet", limit.String())
	was := label(at)
	for _, name := range []string{"drawn", "drawn-again"} {
		t.Run(name, func(t *testing.T) {
			newPod(t, name, "nolevel", "{}")
			awaitRunning(t, name, patience)
		})
		if now := label(at); now == was {
			t.Errorf("after %s: still %s", name, now)
		}
		was = label(at)
	}
	const l = "s0:c65,c66"
	fastlabel(t, "-l", l, at)
	starts(t, "named", at, l)
}

// fastlabel runs the command on the node.
func fastlabel(t *testing.T, args ...string) {
	t.Helper()
	out, err := exec.Command("fastlabel", args...).CombinedOutput()
	if t.Logf("fastlabel %v: %s", args, out); err != nil {
		t.Error(err)
	}
}
