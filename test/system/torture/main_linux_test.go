// SPDX-License-Identifier: Apache-2.0

package torture

import (
	"os"
	"testing"

	"github.com/fastlabel/fastlabel/test/treetest"
)

func TestMain(m *testing.M) {
	if code, is := roleOf(os.Args); is {
		os.Exit(code)
	}
	code := treetest.Main(m)
	builds.remove()
	os.Exit(code)
}

// pick chooses by TORTURE how much of a check is run.
func pick[T any](short, full, long T) T {
	switch os.Getenv("TORTURE") {
	case "full":
		return full
	case "long":
		return long
	}
	return short
}

// row is what became of a check.
type row struct {
	check   string // what was done, with its bar: "R1 SIGKILL before each call"
	where   string // the filesystem, the way, the tree
	runs    int    // attacks, points, or runs
	bad     int    // violations: the bar is 0
	control string // what was attacked the same way and must fall; "" if none is possible
	// controlBad of controlRuns fell.
	controlRuns, controlBad int
	note                    string // a measurement, or why there is no control
}

// add logs r, and fails the test if it shows a violation, or nothing at all.
func (r row) add(t *testing.T) {
	t.Helper()
	t.Logf("%s, %s: %d violations in %d runs; control %s: %d in %d; %s", r.check, r.where, r.bad, r.runs, r.control, r.controlBad, r.controlRuns, r.note)
	switch {
	case r.runs == 0:
		t.Error("nothing was run")
	case r.bad > 0:
		t.Errorf("%d violations in %d runs", r.bad, r.runs)
	case r.control != "" && r.controlBad == 0:
		t.Errorf("the control (%s) stood in %d runs: the attack proves nothing", r.control, r.controlRuns)
	case r.control == "" && r.note == "":
		t.Error("no control, and no reason why")
	}
}
