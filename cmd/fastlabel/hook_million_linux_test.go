// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/exit"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/words"
	"github.com/fastlabel/fastlabel/test/treetest"
)

// cost is what a run took.
type cost struct{ wall, cpu time.Duration }

// TestHookProbes: on a volume that is labelled already the hook only looks at
// the root, so what it costs does not grow with the volume. It is held against
// what the same program takes to print its version, run by run, and the walk is
// the control. FASTLABEL_MILLION=1 makes a million files on a tmpfs (it needs 2 GiB
// of memory), and times are logged; else it is fifty thousand.
func TestHookProbes(t *testing.T) {
	const times = 8 // 1 to 2 is usual, and 20 runs each find a quiet moment
	ownRuntime(t)
	x := newContainer(t, "relabel=/data")
	files := 50_000
	if os.Getenv("FASTLABEL_MILLION") == "1" {
		files = 1_000_000
	}
	volume := x.dir + "/data"
	if at, err := os.MkdirTemp("/dev/shm", "fastlabel-"); err == nil {
		t.Cleanup(func() { os.RemoveAll(at) })
		volume = at
	}
	begin := time.Now()
	entries := fill(t, volume, files)
	setLabel(t, volume, others)
	t.Logf("%s entries made in %v", words.Thousands(int64(entries)), time.Since(begin).Round(time.Millisecond))
	x.bind("/data", volume)
	state := x.write()
	binary := treetest.Command(t)
	run := func(args ...string) (c cost, said string) {
		cmd := exec.Command(binary, args...)
		cmd.Stdin = strings.NewReader(state)
		begin := time.Now()
		out, err := cmd.CombinedOutput()
		c.wall = time.Since(begin)
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		c.cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
		return c, string(out)
	}

	walk, said := run("hook", "-v")
	expectHook(t, "walk", 0, exit.Done, said, fmt.Sprintf("/data: %s entries, %[1]s written", words.Thousands(int64(entries))))
	_, said = run("hook", "-v")
	expectHook(t, "probe", 0, exit.Done, said, "/data: already labelled (root), ")

	t.Logf("walk:  %v wall, %v processor", walk.wall.Round(time.Millisecond), walk.cpu.Round(time.Millisecond))
	var wall, cpu, version []time.Duration
	for range 20 {
		c, said := run("hook")
		expectHook(t, "probe", 0, exit.Done, said)
		wall, cpu = append(wall, c.wall), append(cpu, c.cpu)
		c, _ = run("version")
		version = append(version, c.cpu)
	}
	slices.Sort(wall)
	slices.Sort(cpu)
	slices.Sort(version)
	t.Logf("probe: %v wall, %v processor (medians of 20; %v to %v, %v to %v); version: %v processor", wall[10], cpu[10], wall[0], wall[19], cpu[0], cpu[19], version[10])
	// The least of each: what others leave in the caches only adds.
	if most := times * max(version[0], time.Millisecond); cpu[0] > most || walk.cpu <= most {
		t.Errorf("a labelled volume of %d files costs %v of processor time, the walk %v and the version %v", files, cpu[0], walk.cpu, version[0])
	}
}

// fill makes that many files beneath dir, a thousand in each directory, and
// returns how many entries there are, dir included.
func fill(t *testing.T, dir string, files int) (entries int) {
	t.Helper()
	const each = 1000
	dirs := files / each
	var wg sync.WaitGroup
	failed := make([]error, 4)
	for w := range failed {
		wg.Go(func() {
			for d := w; d < dirs && failed[w] == nil; d += len(failed) {
				sub := fmt.Sprintf("%s/d%04d", dir, d)
				failed[w] = os.MkdirAll(sub, 0o700)
				for f := 0; f < each && failed[w] == nil; f++ {
					failed[w] = syscall.Mknod(fmt.Sprintf("%s/f%03d", sub, f), syscall.S_IFREG|0o600, 0)
				}
			}
		})
	}
	wg.Wait()
	for _, err := range failed {
		if err != nil {
			t.Fatal(err)
		}
	}
	return 1 + dirs + files
}
