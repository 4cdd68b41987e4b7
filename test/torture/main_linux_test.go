// SPDX-License-Identifier: Apache-2.0

package torture

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fastlabel/fastlabel/test/treetest"
)

func TestMain(m *testing.M) {
	if code, is := roleOf(os.Args); is {
		os.Exit(code)
	}
	table.version = version() // before the tree can change under a long run
	code := treetest.Main(m)
	builds.remove()
	if err := table.print(); err != nil {
		fmt.Fprintln(os.Stderr, "torture:", err)
		code = max(code, 1)
	}
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

// row is one line of the table.
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

// tableOf is the rows in the order in which they came.
type tableOf struct {
	mu      sync.Mutex
	rows    []row
	begin   time.Time
	version string
}

var table = tableOf{begin: time.Now()}

// add puts r in the table, and fails the test if it shows a violation, or
// nothing at all.
func (r row) add(t *testing.T) {
	t.Helper()
	table.mu.Lock()
	table.rows = append(table.rows, r)
	table.mu.Unlock()
	switch {
	case r.runs == 0:
		t.Errorf("%s, %s: nothing was run", r.check, r.where)
	case r.bad > 0:
		t.Errorf("%s, %s: %d violations in %d runs", r.check, r.where, r.bad, r.runs)
	}
	if r.control != "" && r.controlBad == 0 {
		t.Errorf("%s, %s: the control (%s) stood in %d runs: the attack proves nothing", r.check, r.where, r.control, r.controlRuns)
	}
	if r.control == "" && r.note == "" {
		t.Errorf("%s, %s: no control, and no reason why", r.check, r.where)
	}
}

func (tb *tableOf) print() error {
	if len(tb.rows) == 0 {
		return nil
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, "fastlabel %s, %s, TORTURE=%s, %d s\n", tb.version, time.Now().UTC().Format("2006-01-02 15:04 MST"),
		pick("short", "full", "long"), int(time.Since(tb.begin).Seconds()))
	out.WriteString(machine())
	w := tabwriter.NewWriter(&out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "check\twhere\truns\tviolations\tcontrol\truns\tviolations\tnote")
	for _, r := range tb.rows {
		runs, bad := fmt.Sprint(r.controlRuns), fmt.Sprint(r.controlBad)
		if r.control == "" {
			r.control, runs, bad = "-", "-", "-"
		}
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%s\t%s\t%s\t%s\n", r.check, r.where, r.runs, r.bad, r.control, runs, bad, r.note)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if file := os.Getenv("FASTLABEL_RESULTS"); file != "" {
		if err := os.WriteFile(file, out.Bytes(), 0o644); err != nil {
			return err
		}
	}
	_, err := os.Stdout.Write(out.Bytes())
	return err
}

// version is the commit of what is tortured.
func version() string {
	text, err := exec.Command("git", "-C", house, "describe", "--always", "--dirty").Output()
	if err != nil {
		return "without a commit"
	}
	return strings.TrimSpace(string(text))
}

// machine names the kernel and the programs that the results depend on.
func machine() string {
	var u unix.Utsname
	_ = unix.Uname(&u)
	lines := []string{fmt.Sprintf("Linux %s %s", unix.ByteSliceToString(u.Release[:]), unix.ByteSliceToString(u.Machine[:]))}
	for _, cmd := range [][]string{{"mkfs.ext4", "-V"}, {"mkfs.xfs", "-V"}, {"mkfs.btrfs", "-V"}, {"chcon", "--version"}} {
		text, err := exec.Command(cmd[0], cmd[1:]...).CombinedOutput()
		first, _, _ := strings.Cut(strings.TrimSpace(string(text)), "\n")
		if err != nil {
			first = cmd[0] + ": " + err.Error()
		}
		lines = append(lines, first)
	}
	return strings.Join(lines, "; ") + "\n"
}
