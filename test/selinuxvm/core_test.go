// SPDX-License-Identifier: Apache-2.0

package selinuxvm

import (
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestCore runs package inside in both kernels, but for what is TestRuntimes' and
// TestRestorecon's.
func TestCore(t *testing.T) {
	runInside(t, "-test.skip="+ofRuntimes+"|"+ofRestorecon)
}

// runInside runs those tests of package inside that the flag chooses, in both
// kernels. None of them may skip.
func runInside(t *testing.T, flag string) {
	m := image(t)
	files := map[string]string{
		"inside.test":    build(t, ".", "./inside", true),
		"fastlabel":      build(t, house, "./cmd/fastlabel", false),
		"fastlabel.json": filepath.Join(house, "deploy/oci/fastlabel.json"),
		"fastlabel.cil":  filepath.Join(house, "deploy/selinux/fastlabel.cil"),
	}
	for _, k := range m.Kernels {
		t.Run(k.Release, func(t *testing.T) {
			t.Parallel()
			judge(t, m, k, "inside", runTests(t, m, k, Command{Args: []string{"/payload/inside.test", flag}, Files: files, Timeout: 30 * time.Minute}))
		})
	}
}

// runTests runs a test binary in the machine. What it printed is shown if it
// failed; one that ended before its tests did fails the test.
func runTests(t *testing.T, m *Image, k Kernel, c Command) []result {
	t.Helper()
	c.Args = append(c.Args, "-test.v", "-test.timeout=1h")
	r, err := m.Run(t.Context(), k, c)
	if err != nil {
		t.Fatalf("%v\nstdout's end:\n%s", err, tail(r.Stdout, 40))
	}
	all := parseResults(r.Stdout)
	failed := 0
	for _, one := range all {
		if one.word == "FAIL" {
			failed++
		}
	}
	if r.Exit != 0 {
		t.Logf("exit code %d\nstdout:\n%s\nstderr:\n%s\nrefused by the policy:\n%s",
			r.Exit, tail(r.Stdout, 400), tail(r.Stderr, 100), tail(refusals(r.Log), 20))
	}
	if len(all) == 0 || (r.Exit != 0) != (failed > 0) {
		t.Errorf("exit code %d with %d results, %d of them failures", r.Exit, len(all), failed)
	}
	t.Logf("%d results; booted in %v, ran for %v", len(all), r.Boot.Round(time.Second), r.Took.Round(time.Second))
	return all
}

// refusals picks SELinux's lines from a kernel's log.
func refusals(log string) string {
	var out strings.Builder
	for line := range strings.Lines(log) {
		if strings.Contains(line, "avc:  denied") || strings.Contains(line, "op=security_compute") || strings.Contains(line, "invalid_context") {
			out.WriteString(line)
		}
	}
	return out.String()
}
