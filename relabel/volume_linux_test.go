// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/fastlabel/fastlabel/test/treetest"
)

// TestVolumeCosts counts what a small volume costs that is right, one of a thousand that
// a node's runtime asks for when it boots: system calls, in a process of its own, and
// allocations.
func TestVolumeCosts(t *testing.T) {
	const turns, more = "FASTLABEL_VOLUME_TURNS", 50
	if n, err := strconv.Atoi(os.Getenv(turns)); err == nil {
		for range n {
			if _, err := Tree(t.Context(), os.Getenv("FASTLABEL_VOLUME"), newLabel, nil); err != nil {
				t.Fatal(err)
			}
		}
		return
	}
	treetest.Need(t, "root", "strace", "plain", "setxattrat")
	const files = 19
	root := filepath.Join(treetest.Fresh(t, "tmpfs"), "volume")
	flat(t, root, files)
	run := func() {
		if r, err := Tree(t.Context(), root, newLabel, nil); err != nil || r.Seen != files+1 {
			t.Fatalf("%+v, %v", r, err)
		}
	}
	run()
	settle(t, root)
	calls := func(n int) map[string]int {
		cmd := exec.Command(os.Args[0], "-test.run=^TestVolumeCosts$")
		cmd.Env = append(os.Environ(), turns+"="+strconv.Itoa(n), "FASTLABEL_VOLUME="+root)
		calls, out, err := treetest.TraceCmd(t, cmd)
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		names := map[string]int{}
		for _, c := range calls {
			p, _ := c.Path()
			place := c.Name == "statx" && filepath.IsAbs(p) && p != root                                 // see TestChconCalls
			clock := c.Name == "read" || c.Name == "write" || c.Name == "getrusage" || c.Name == "clone" // where a run takes long
			if !place && !clock {
				names[c.Name]++
			}
		}
		return names
	}
	few, many := calls(1), calls(1+more)
	each, all := map[string]float64{}, 0.0
	for name, n := range many {
		each[name] = float64(n-few[name]) / more
		all += each[name]
	}
	if least, most := float64(files+8), float64(files+24); all < least || all > most {
		t.Errorf("%.1f calls for a volume, want %.0f to %.0f: %v", all, least, most, each)
	}
	if n := testing.AllocsPerRun(more, run); n > 150 {
		t.Errorf("%.0f allocations for a volume", n)
	}
}
