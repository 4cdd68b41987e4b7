// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// packages are what may become of a package, and of its tests.
var packages = map[string]string{
	"good": `func TestGood(t *testing.T) { t.Run("sub", func(*testing.T) {}) }
func TestSkips(t *testing.T) { t.Log("before"); t.Skip("needs a kettle: it is cold") }`,
	"bad":    `func TestBad(t *testing.T) { t.Error("this is why") }; func TestFine(t *testing.T) {}`,
	"broken": `func TestBroken(t *testing.T) { undefined() }`,
	"panics": `func TestPanics(t *testing.T) { panic("oops") }; func TestLater(t *testing.T) {}`,
	"exits":  `func TestMain(*testing.M) { println("as asked"); os.Exit(3) }`,
	"leaves": `func TestLeaves(t *testing.T) { t.Run("in", func(*testing.T) { os.Exit(0) }) }`,
	"killed": `func TestKilled(t *testing.T) { syscall.Kill(os.Getpid(), syscall.SIGKILL) }`,
	"meets": `func TestMeets(t *testing.T) {
	if name := os.Getenv("FIFO"); os.Getenv("X") == "first" {
		t.Log(os.ReadFile(name)) // until the second pass has ended
	} else {
		t.Log(os.OpenFile(name, os.O_WRONLY, 0)) // until the first is there
	}
}`,
	"endless": `func TestEndless(t *testing.T) { select {} }`,
}

// module writes a module of these packages, and goes there.
func module(t *testing.T, names ...string) {
	t.Helper()
	t.Chdir(t.TempDir())
	t.Setenv("CGO_ENABLED", "0")
	t.Setenv("GOFLAGS", "")
	write := func(name, text string) {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("go.mod", "module m\n\ngo 1.24\n")
	for _, name := range names {
		write(name+"/x_test.go", "package x\n\nimport (\"os\"; \"syscall\"; \"testing\")\n\nvar _ = os.Exit\nvar _ = syscall.Kill\n\n"+packages[name]+"\n")
	}
}

func runs(flags []string, passes ...string) (code int, said string) {
	var b strings.Builder
	s := &suite{out: bufio.NewWriter(&b), more: flags}
	s.verbose = len(flags) > 0 && flags[0] == "-v"
	s.passes(passes)
	code = s.sum()
	s.out.Flush()
	return code, b.String()
}

// Whatever becomes of a package is counted, told by name, and does not keep the
// next pass from running.
func TestCounts(t *testing.T) {
	module(t, "good", "bad", "broken", "panics", "exits", "leaves", "killed", "endless")
	code, said := runs(nil, "first -timeout=10m ./good ./bad ./broken ./panics ./exits ./leaves ./killed", "second X=y ./good", "third -timeout=1s ./endless")
	want := "5 passed, 8 failed, 2 skipped\n" // both of good twice, and TestFine
	if code != 1 || !strings.HasSuffix(said, want) {
		t.Errorf("exit %d, not %q:\n%s", code, want, said)
	}
	for _, text := range []string{
		"x_test.go:8: this is why\n", "undefined: undefined", "panic: oops", "as asked",
		"\nSKIPPED: needs a kettle: it is cold (m/good TestSkips)\n", "\n== second: go test ",
	} {
		if !strings.Contains(said, text) {
			t.Errorf("%q is not said", text)
		}
	}
	var failed []string
	for _, m := range regexp.MustCompile(`(?m)^FAILED: (.*)$`).FindAllStringSubmatch(said, -1) {
		failed = append(failed, m[1])
	}
	names := "first: m/bad TestBad, first: m/broken, first: m/exits, first: m/killed TestKilled, first: m/leaves TestLeaves, " +
		"first: m/leaves TestLeaves/in, first: m/panics TestPanics, third: m/endless TestEndless"
	if got := strings.Join(failed, ", "); got != names {
		t.Errorf("failed: %s\n   want: %s", got, names)
	}
	if strings.Contains(said, "--- PASS") {
		t.Error("what passed is told")
	}
	if t.Failed() {
		t.Log(said)
	}
}

// All is well only if something ran.
func TestCodes(t *testing.T) {
	module(t, "good")
	for _, c := range []struct {
		flags []string
		code  int
		last  string
	}{
		{nil, 0, "2 passed, 0 failed, 1 skipped\n"},
		{[]string{"-v"}, 0, "2 passed, 0 failed, 1 skipped\n"},
		{[]string{"-run=^TestNone$"}, 1, "FAILED: nothing was run\n0 passed, 1 failed, 0 skipped\n"},
		{[]string{"-nonsense"}, 1, "0 passed, 1 failed, 0 skipped\n"},
	} {
		code, said := runs(c.flags, "only ./good")
		if code != c.code || !strings.HasSuffix(said, c.last) {
			t.Errorf("%q: exit %d: %s", c.flags, code, said)
		}
		if lines := strings.Count(said, "--- PASS: "); c.flags != nil && c.flags[0] == "-v" && lines != 2 {
			t.Errorf("%q: %d lines of what passed: %s", c.flags, lines, said)
		}
	}
}
