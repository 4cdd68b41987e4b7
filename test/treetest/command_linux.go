// SPDX-License-Identifier: Apache-2.0

package treetest

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// commandEnv names the command as it ships, built by somebody else: for machines
// without go.
const commandEnv = "FASTLABEL_COMMAND"

// Command gives the command as it ships. It is built unless FASTLABEL_COMMAND
// names one. Without a C library, which makes calls of its own.
func Command(t testing.TB) string {
	t.Helper()
	if built := os.Getenv(commandEnv); built != "" {
		return built
	}
	Need(t, "go")
	file := filepath.Join(t.TempDir(), "fastlabel")
	build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", file, "github.com/fastlabel/fastlabel/cmd/fastlabel")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return file
}
