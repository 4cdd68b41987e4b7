// SPDX-License-Identifier: Apache-2.0

package selinuxvm

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

const (
	// ofRuntimes matches the tests of package inside that start containers. They
	// have machines of their own, for each start takes seconds.
	ofRuntimes = "^TestRuntime"
	// ofRestorecon matches those that change the labels of the whole machine. They
	// have machines of their own.
	ofRestorecon = "^TestRestorecon"
)

// TestCore runs package inside in both kernels, but for what is TestRuntimes' and
// TestRestorecon's.
func TestCore(t *testing.T) { runInside(t, "-test.skip="+ofRuntimes+"|"+ofRestorecon) }

// TestRuntimes runs in both kernels the tests that start containers with the
// machine's runc, crun and podman.
func TestRuntimes(t *testing.T) { runInside(t, "-test.run="+ofRuntimes) }

// TestRestorecon runs in both kernels those that compare fastlabel restorecon with the
// machine's restorecon.
func TestRestorecon(t *testing.T) { runInside(t, "-test.run="+ofRestorecon) }

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
			runTests(t, m, k, Command{Args: []string{"/payload/inside.test", flag}, Files: files, Timeout: 30 * time.Minute})
		})
	}
}

// lacks is what treetest.Need says of a test that skips.
var lacks = regexp.MustCompile(`: needs (\S+): `)

// failures are the tests that failed.
var failures = regexp.MustCompile(`--- FAIL: \S+`)

// runTests runs a test binary in the machine. Its tests pass, and none skips but for want
// of what excused names.
func runTests(t *testing.T, m *Image, k Kernel, c Command, excused ...string) {
	t.Helper()
	c.Args = append(c.Args, "-test.v", "-test.timeout=1h")
	r := m.Run(t, k, c)
	passed, skipped := strings.Count(r.Stdout, "--- PASS: "), strings.Count(r.Stdout, "--- SKIP: ")
	t.Logf("%d passed, %d skipped; booted in %v, ran for %v", passed, skipped, r.Boot.Round(time.Second), r.Took.Round(time.Second))
	ran := passed + skipped
	for _, why := range lacks.FindAllStringSubmatch(r.Stdout, -1) {
		if skipped--; !slices.Contains(excused, why[1]) {
			t.Errorf("skipped, and may not be, for want of %s", why[1])
		}
	}
	if r.Exit != 0 || ran == 0 || skipped != 0 {
		t.Errorf("exit code %d, %d skipped without a reason; failed: %q\nstdout:\n%s\nstderr:\n%s\nrefused by the policy:\n%s",
			r.Exit, skipped, failures.FindAllString(r.Stdout, -1), tail(r.Stdout, 400), tail(r.Stderr, 100), tail(r.Refusals(), 20))
	}
}
