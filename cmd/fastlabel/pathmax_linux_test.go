// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/exit"
	"github.com/fastlabel/fastlabel/test/treetest"
)

// TestBeyondPathMax calls the command from a directory that is deeper than the kernel
// tells a path, with another filesystem mounted in it.
func TestBeyondPathMax(t *testing.T) {
	treetest.Need(t, "root", "tmpfs")
	command := treetest.Command(t)
	t.Chdir(treetest.Fresh(t, "tmpfs"))
	name := strings.Repeat("d", 200)
	for range 22 {
		if err := os.Mkdir(name, 0o755); err != nil {
			t.Fatal(err)
		}
		t.Chdir(name)
	}
	if err := errors.Join(os.Mkdir("sub", 0o755), os.Mkdir("m", 0o755), syscall.Mount("test", "m", "tmpfs", 0, "")); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := syscall.Unmount("m", syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	}()
	if err := errors.Join(os.WriteFile("sub/f", nil, 0o600), os.WriteFile("m/f", nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := syscall.Getwd(); err == nil {
		t.Fatal("control: the kernel tells the path")
	}
	for _, c := range []struct {
		args string
		code int
		says string
	}{
		{"-n .", exit.Differs, ".: 5 entries, 5 to write"},
		{"probe .", exit.Differs, ".: not labelled"},
		{"sub", exit.Done, "sub: 2 entries, 2 written"},
		{"sub/f sub .", exit.Done, ".: 5 entries, 3 written, 2 right"},
		{"--skip root .", exit.Done, ".: already labelled"},
		{"probe .", exit.Done, ".: labelled"},
		{"verify . sub", exit.Done, ".: 5 entries, 0 differ"},
	} {
		out, err := exec.Command(command, strings.Fields(c.args)...).CombinedOutput()
		var exit *exec.ExitError
		code := 0
		if errors.As(err, &exit) {
			code = exit.ExitCode()
		} else if err != nil {
			t.Fatal(err)
		}
		if code != c.code || !strings.Contains(string(out), c.says) {
			t.Errorf("fastlabel %s: exit %d, %q; want exit %d and %q", c.args, code, out, c.code, c.says)
		}
	}
}
