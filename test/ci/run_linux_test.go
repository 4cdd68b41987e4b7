// SPDX-License-Identifier: Apache-2.0

package ci

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/fastlabel/fastlabel/test/treetest"
)

// ci prepares .ci/run in a directory of its own, with a Makefile in which these
// targets have these recipes and all others pass.
func ci(t *testing.T, recipes map[string]string) *exec.Cmd {
	t.Helper()
	treetest.Need(t, "root", "make")
	dir := t.TempDir()
	text, err := os.ReadFile("../../.ci/run")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(dir+"/.ci", 0o755); err != nil {
		t.Fatal(err)
	}
	makefile := "%:\n\t@echo '--- PASS: TestGood (0.00s)'\n"
	for target, recipe := range recipes {
		makefile += target + ":\n\t@" + recipe + "\n"
	}
	for name, text := range map[string]string{"/.ci/run": string(text), "/Makefile": makefile} {
		if err := os.WriteFile(dir+name, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return exec.Command(filepath.Join(dir, ".ci/run"))
}

// The last lines name what failed, whatever came after it.
func TestCI(t *testing.T) {
	good, err := ci(t, nil).CombinedOutput()
	if err != nil || !strings.HasSuffix(string(good), "\n12 passed, 0 failed\n") {
		t.Errorf("%v: %s", err, good)
	}
	bad := ci(t, map[string]string{
		"test":     `printf '    --- FAIL: TestBad/in (0.01s)\n--- FAIL: TestBad (0.01s)\n--- PASS: TestFine (0.00s)\n'; exit 1`,
		"test-nri": `printf '    x_test.go:3: why\n--- SKIP: TestSkips (0.00s)\n--- PASS: TestFine (0.00s)\n'`,
		"lint":     `exit 3`,
		"torture":  `exit 4`,
	})
	out, err := bad.CombinedOutput()
	want := `
FAILED: test: TestBad/in
FAILED: test: TestBad
FAILED: torture: exit 2, 0 tests passed
SKIPPED, and may not be: nri: TestSkips
FAILED: lint: exit 2
10 passed, 5 failed
`
	if code := bad.ProcessState.ExitCode(); code != 1 || !strings.HasSuffix(string(out), want) {
		t.Errorf("exit %d, %v: %s", code, err, out)
	}
}

// Two steps are at work at once: here neither ends before the other has begun. What
// each prints is in one piece. What measures time has no other beside it.
func TestCITwo(t *testing.T) {
	cmd := ci(t, map[string]string{
		"test":         "touch alone; sleep 0.2; rm alone; echo '--- PASS: TestGood (0.00s)'",
		"test-selinux": "[ -e alone ] || echo '--- PASS: TestGood (0.00s)'; echo first; timeout 240 cat both",
		"torture":      "echo '--- PASS: TestGood (0.00s)'; echo first; echo second | timeout 240 tee both",
	})
	if err := syscall.Mkfifo(filepath.Join(filepath.Dir(cmd.Path), "../both"), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.CombinedOutput()
	both := strings.Count(string(out), "\nfirst\nsecond\n")
	if err != nil || both != 2 || !strings.HasSuffix(string(out), "\n12 passed, 0 failed\n") {
		t.Errorf("%v: %s", err, out)
	}
}

// A signal ends the steps under way, and what they have started.
func TestCISignal(t *testing.T) {
	for sig, code := range map[syscall.Signal]int{syscall.SIGTERM: 143, syscall.SIGINT: 130} {
		fifo := filepath.Join(t.TempDir(), "fifo")
		if err := syscall.Mkfifo(fifo, 0o600); err != nil {
			t.Fatal(err)
		}
		endless := fmt.Sprintf("sh -c 'sleep 3600 & echo $$$$ $$! >%s; wait'", fifo)
		cmd := ci(t, map[string]string{"torture": endless, "test-selinux": endless})
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		f, err := os.OpenFile(fifo, os.O_RDWR, 0) // so that it has a writer until both have written
		if err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewReader(f)
		var pids [4]int
		for i := 0; i < len(pids); i += 2 {
			line, err := lines.ReadString('\n')
			if _, err2 := fmt.Sscan(line, &pids[i], &pids[i+1]); err != nil || err2 != nil {
				t.Fatalf("%q, %v, %v", line, err, err2)
			}
		}
		f.Close()
		if err := cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
		treetest.Returns(t, "the end of .ci/run", func() { _ = cmd.Wait() })
		if got := cmd.ProcessState.ExitCode(); got != code {
			t.Errorf("%v: exit %d", sig, got)
		}
		for _, pid := range pids {
			treetest.Wait(t, fmt.Sprintf("the end of process %d", pid), func() bool {
				stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
				return err != nil || strings.Contains(string(stat), ") Z ")
			})
		}
	}
}
