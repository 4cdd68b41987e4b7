// SPDX-License-Identifier: Apache-2.0

package inside

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"testing"
	"time"
)

// TestStoryLarge measures on a volume of FILES files how long a pod takes to start when it
// is labelled, beside the same pod on an empty volume; and how long that one takes while the
// large one is labelled: by the plugin, or by a process that holds no request of the runtime,
// the control of what the one processor has to do.
func TestStoryLarge(t *testing.T) {
	n, err := strconv.Atoi(os.Getenv("FILES"))
	if err != nil {
		t.Skip("for the number in FILES")
	}
	ready(t)
	patient(t)
	const at, empty = "/volumes/tmpfs/large", "/volumes/tmpfs/empty"
	begin := time.Now()
	t.Cleanup(func() {
		if err := os.RemoveAll(at); err != nil { // memory
			t.Error(err)
		}
	})
	makeFiles(t, at, n)
	makeFiles(t, empty, 0)
	t.Logf("%d files, made in %v", n, time.Since(begin).Round(time.Second))
	for name, path := range map[string]string{"large": at, "empty": empty} {
		create(t, "volume", map[string]string{"NAME": name, "PATH": path})
	}
	took := map[string][]time.Duration{}
	start := func(t *testing.T, what, claim, l string) {
		name := fmt.Sprintf("%s-%d", what, len(took[what]))
		t.Run(name, func(t *testing.T) {
			took[what] = append(took[what], begins(t, name, claim, l))
			if crio && claim == "large" {
				skipped(t, name, claim)
			}
		})
	}
	const l, small = "s0:c61,c62", "s0:c63,c64"
	process(t, at, l, func() {})
	for range 5 {
		start(t, "empty", "empty", small)
		start(t, "large", "large", l)
	}
	holds(t, at, l)

	for i := range 3 {
		process(t, at, fmt.Sprintf("s0:c70,c%d", 80+i), func() { start(t, "beside-process", "empty", small) })
	}
	deployPlugin(t)
	for i := range 3 {
		name, l := fmt.Sprintf("plugin-%d", i), fmt.Sprintf("s0:c71,c%d", 80+i)
		t.Run(name, func(t *testing.T) {
			prelabelled(t, name, "large", l)
			waits(t, name)
			start(t, "beside-plugin", "empty", small)
			if label(at) == fileType+l {
				t.Error("the work ended before the pod had started beside it")
			}
			awaitRunning(t, name, patience)
			inTime(t, name)
			oneWalk(t, l)
		})
	}
	holds(t, at, "s0:c71,c82")
	for _, what := range []string{"empty", "large", "beside-process", "beside-plugin"} {
		all := slices.Sorted(slices.Values(took[what]))
		t.Logf("%s: median %v of %v", what, all[len(all)/2], all)
	}
}

// process labels a volume by the command, outside of all pods.
func process(t *testing.T, at, l string, during func()) {
	t.Helper()
	cmd := exec.Command("/payload/bin/fastlabel", "-l", l, at)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	during()
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
}

// begins is the time from a pod's creation until its app has written into its volume.
func begins(t *testing.T, name, claim, l string) time.Duration {
	t.Helper()
	begin := time.Now()
	newPod(t, name, claim, level(l))
	awaitRunning(t, name, patience)
	wrote(t, name, l)
	info, err := os.Stat(saidFile(t, name))
	if err != nil {
		t.Fatal(err)
	}
	return info.ModTime().Sub(begin).Round(10 * time.Millisecond)
}
