// SPDX-License-Identifier: Apache-2.0

package runtimes

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/fastlabel/fastlabel/test/treetest"
)

// TestBig states what the hook costs at the first start on a volume of 100,000
// files, and at the second, which looks at the root alone. That the second does not
// grow with the volume shows TestSecond.
func TestBig(t *testing.T) {
	e := engine{"", "runc"}
	e.need(t)
	treetest.Need(t, "xfs") // it has as many inodes as there is room
	v := volume{root: filepath.Join(treetest.Fresh(t, "xfs"), "volume"), entries: 1}
	for i := range 100 {
		dir := filepath.Join(v.root, fmt.Sprintf("d%02d", i))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		v.entries++
		for j := range 1000 {
			if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("f%04d", j)), nil, 0o644); err != nil {
				t.Fatal(err)
			}
			v.entries++
		}
	}
	lines := filepath.Join(t.TempDir(), "lines")
	x := cell{e, "createRuntime"}.with(t, v)
	check := x.process
	x.process = idleArgs()
	plain := x.start(t)
	plain.succeeds(t, "without a hook")
	x.hooks = []hook{noted(place.hook, lines, 0)}
	first := x.start(t)
	first.succeeds(t, "first")
	second := x.start(t)
	second.succeeds(t, "second")
	x.hooks, x.process = nil, check
	x.start(t).succeeds(t, "every label is right")

	said, err := os.ReadFile(lines)
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`(?s)100,101 entries, 100,101 written, 0 failed, ([0-9.]+) s; label .*already labelled \(root\), ([0-9.]+) s; label `).FindSubmatch(said)
	if m == nil {
		t.Fatalf("the hook says: %s", said)
	}
	var took [2]float64
	for i := range took {
		if _, err := fmt.Sscan(string(m[i+1]), &took[i]); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d entries: the hook takes %.3f s at the first start, %.3f s at the second; the starts take %v and %v, and %v without the hook",
		v.entries, took[0], took[1], first.took.Round(time.Millisecond), second.took.Round(time.Millisecond), plain.took.Round(time.Millisecond))
	if took[1] > took[0] {
		t.Errorf("the second start took longer than the first")
	}
}
