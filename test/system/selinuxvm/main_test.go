// SPDX-License-Identifier: Apache-2.0

package selinuxvm

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/fastlabel/fastlabel/test/treetest"
)

// prepared is the image, found or made at the first need.
var prepared = sync.OnceValues(func() (*Image, error) {
	return Prepare(func(s string) { fmt.Fprintln(os.Stderr, "selinuxvm:", s) })
})

// image skips the test where there can be none, loudly; in CI and where
// FASTLABEL_PROMISE names selinuxvm it fails.
func image(t *testing.T) *Image {
	t.Helper()
	m, err := prepared()
	if err == nil {
		return m
	}
	if os.Getenv("CI") != "" {
		t.Fatalf("no machine, and CI asks for one: %v", err)
	}
	fmt.Fprintln(os.Stderr, "selinuxvm: NOT RUN:", err)
	treetest.Lack(t, "selinuxvm", err)
	return nil
}

// build builds a package of the house or of this module: its command, or its
// tests. more are arguments of go build.
func build(t *testing.T, dir, pkg string, tests bool, more ...string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "program")
	args := []string{"build"}
	if tests {
		args = []string{"test", "-c"}
	}
	args = append(args, "-trimpath", "-o", file)
	cmd := exec.Command("go", append(append(args, more...), pkg)...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "CGO_ENABLED=0")
	treetest.Output(t, cmd)
	return file
}
