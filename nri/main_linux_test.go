// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"testing"

	"github.com/fastlabel/fastlabel/test/treetest"
)

// childEnv makes the test program the plugin.
const childEnv = "FASTLABEL_NRI_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) == "" {
		os.Exit(treetest.Main(m))
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// startProcess starts a plugin in a process of its own.
func startProcess(t *testing.T, n *node, flags ...string) *exec.Cmd {
	t.Helper()
	p := exec.Command("/proc/self/exe", append(n.flags(), flags...)...)
	p.Env, p.Stderr = append(os.Environ(), childEnv+"=1"), os.Stderr
	treetest.Must(t, p.Start())
	t.Cleanup(func() {
		_ = p.Process.Kill() // it may have ended
		_ = p.Wait()
	})
	return p
}
