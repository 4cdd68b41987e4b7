// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"os/exec"
	"path/filepath"
	"testing"
)

// buildProgram builds the command once for a test.
func buildProgram(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "fastlabel")
	cmd := exec.Command("go", "build", "-o", file, "./cmd/fastlabel")
	cmd.Dir = "../../.."
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return file
}

// runProgram returns stdout, and the exit code.
func runProgram(t *testing.T, program string, args ...string) (stdout []byte, code int) {
	t.Helper()
	cmd := exec.Command(program, args...)
	stdout, err := cmd.Output()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return stdout, cmd.ProcessState.ExitCode()
}
