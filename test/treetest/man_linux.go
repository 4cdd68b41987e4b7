// SPDX-License-Identifier: Apache-2.0

package treetest

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// Man is the manual page in file as man(1) shows it on a wide screen; the test
// fails if man has a word to say against it.
func Man(t testing.TB, file string) string {
	t.Helper()
	cmd := exec.Command("man", "--warnings=w", "-E", "UTF-8", "-l", file)
	cmd.Env = append(os.Environ(), "MANWIDTH=200", "MANROFFOPT=", "LC_ALL=C.UTF-8")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil || stderr.Len() > 0 {
		t.Errorf("man --warnings: %v: %s", err, stderr.String())
	}
	return string(out)
}
