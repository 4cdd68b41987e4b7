// SPDX-License-Identifier: Apache-2.0

package treetest

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// peakEnv names the file that a run of Peak writes to.
const peakEnv = "FASTLABEL_PEAK"

// Peak prepares cmd to have the peak of its resident memory measured, and gives
// what to ask for it, in KiB, when cmd has ended.
//
// The kernel keeps the peak of a child that has ended, so that none is too short to
// be measured; but it counts what was resident before execve, and that is all of
// the program that started it. So cmd is started by this program started anew,
// which is small: 10 MiB are the least that this measures.
func Peak(t testing.TB, cmd *exec.Cmd) func() int {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if cmd.Err != nil {
		t.Fatal(cmd.Err)
	}
	file := t.TempDir() + "/peak"
	cmd.Args = append([]string{self, cmd.Path}, cmd.Args...)
	cmd.Path = self
	cmd.Env = append(cmd.Environ(), peakEnv+"="+file)
	return func() int {
		t.Helper()
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		kib, err := strconv.Atoi(strings.TrimSpace(string(text)))
		if err != nil {
			t.Fatal(err)
		}
		return kib
	}
}

// measure runs os.Args[1] with the arguments that follow, writes its peak to file,
// and gives its exit code.
func measure(file string) (int, error) {
	if len(os.Args) < 3 {
		return 0, fmt.Errorf("%s is set, but there is no command: %q", peakEnv, os.Args)
	}
	if err := os.Unsetenv(peakEnv); err != nil {
		return 0, err
	}
	cmd := &exec.Cmd{Path: os.Args[1], Args: os.Args[2:], Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr}
	ended := cmd.Run()
	if cmd.ProcessState == nil {
		return 0, ended
	}
	usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		return 0, fmt.Errorf("no usage of %s", os.Args[1])
	}
	return cmd.ProcessState.ExitCode(), os.WriteFile(file, fmt.Appendln(nil, usage.Maxrss), 0o600)
}
