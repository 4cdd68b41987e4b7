// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/exit"
	"github.com/fastlabel/fastlabel/test/treetest"
)

// What does not end is left behind, in time and not in silence; also a child that cannot
// even leave.
func TestStuck(t *testing.T) {
	for _, c := range []struct {
		mode string
		sig  syscall.Signal
		says string
	}{
		{"hangs", 0, "deadline of 300ms reached; what was begun does not return\n"},
		{"apart hangs", 0, "deadline of 300ms reached; what was begun does not return\n"},
		{"apart hangs", syscall.SIGINT, "interrupted by SIGINT; what was begun does not return\n"},
		{"apart names", syscall.SIGTERM, "interrupted by SIGTERM; process "},
	} {
		t.Run(c.mode+c.sig.String(), func(t *testing.T) {
			t.Parallel() // it sleeps
			args, code := []string{"/p"}, 128+int(c.sig)
			if c.sig == 0 {
				args, code = append(args, "--timeout", "300ms"), exit.TimedOut
			}
			cmd, stderr := start(t, c.mode, nil, args...)
			if c.mode == "apart names" {
				treetest.Must(t, syscall.Kill(partOf(t, cmd, stderr.ReadString), syscall.SIGSTOP))
			} else {
				expect(t, stderr, "begun\n")
			}
			if c.sig != 0 {
				treetest.Must(t, cmd.Process.Signal(c.sig))
			}
			if c.mode != "apart names" {
				expect(t, stderr, "told\n")
			}
			expect(t, stderr, "fastlabel: "+c.says)
			ended(t, cmd, code)
		})
	}
}

// The child ends with its parent, and its own violent end is told.
func TestApartKilled(t *testing.T) {
	cmd, stderr := start(t, "apart names", nil, "/p")
	child := partOf(t, cmd, stderr.ReadString)
	treetest.Must(t, cmd.Process.Kill())
	_ = cmd.Wait()
	treetest.Wait(t, "the child's end", func() bool {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", child))
		return err != nil || bytes.Contains(text, []byte(") Z "))
	})

	cmd, stderr = start(t, "apart names", nil, "/p")
	child = partOf(t, cmd, stderr.ReadString)
	treetest.Must(t, syscall.Kill(child, syscall.SIGKILL))
	expect(t, stderr, fmt.Sprintf("fastlabel: process %d was ended by a signal: killed\n", child))
	ended(t, cmd, 128+9)
}

func partOf(t *testing.T, cmd *exec.Cmd, line func(byte) (string, error)) int {
	t.Helper()
	_, _ = line('\n')
	text, err := line('\n')
	pid, err2 := strconv.Atoi(strings.TrimSpace(text))
	if err := errors.Join(err, err2); err != nil || pid == cmd.Process.Pid {
		t.Fatalf("process %d said %q: %v", cmd.Process.Pid, text, err)
	}
	return pid
}

// A child reads and writes what the command was given, stdin by any name, and all of that
// comes before the end.
func TestApartOutput(t *testing.T) {
	list := filepath.Join(t.TempDir(), "list")
	treetest.Must(t, os.WriteFile(list, []byte("/p\n"), 0o600))
	for _, from := range []string{"-", "/dev/stdin", "/dev/fd/3"} {
		file, err := os.Open(list)
		treetest.Must(t, err)
		defer file.Close()
		cmd := command("apart talks", "-v", "-f", from)
		if cmd.Stdin = file; from == "/dev/fd/3" {
			cmd.Stdin, cmd.ExtraFiles = nil, []*os.File{file}
		}
		var stdout, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		treetest.Must(t, cmd.Run())
		if n, said := strings.Count(stdout.String(), "\n"), stderr.String(); n != 20000 || strings.Count(said, ": skipped: ") != 2000 || !strings.Contains(said, "fastlabel: /p: 2 entries") {
			t.Errorf("%s: %d lines on stdout, stderr is\n%s", from, n, said)
		}
	}
}
