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
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/site"
	"github.com/fastlabel/fastlabel/test/treetest"
)

// A child that does not end is left behind, in time and not in silence.
func TestApartStuck(t *testing.T) {
	for _, sig := range []syscall.Signal{0, syscall.SIGINT, syscall.SIGTERM} {
		args, code := []string{"/p"}, 128+int(sig)
		if sig == 0 {
			args, code = append(args, "--timeout", "300ms"), exit.TimedOut
		}
		cmd, stderr := start(t, "apart hangs", nil, args...)
		expect(t, stderr, "begun\n")
		if sig != 0 {
			treetest.Must(t, cmd.Process.Signal(sig))
		}
		expect(t, stderr, "told\n")
		line, _ := stderr.ReadString('\n')
		if !strings.HasPrefix(line, "fastlabel: ") || !strings.HasSuffix(line, " does not end\n") {
			t.Errorf("said %q", line)
		}
		ended(t, cmd, code)
	}
}

// A child that works on after its end has come is waited for: it does end.
func TestApartWorks(t *testing.T) {
	cmd, stderr := start(t, "apart works", nil, "/p")
	expect(t, stderr, "begun\n")
	treetest.Must(t, cmd.Process.Signal(os.Interrupt))
	expect(t, stderr, "fastlabel: /p: incomplete (interrupted by SIGINT), 2 entries")
	expect(t, stderr, "fastlabel: not done; to resume: ")
	ended(t, cmd, exit.Interrupted)
}

// SIGUSR1 to the parent and the child, as pkill sends it, is answered once; the next
// again.
func TestApartAsked(t *testing.T) {
	cmd, stderr := start(t, "apart waits", nil, "/p")
	expect(t, stderr, "begun\n")
	for range 3 {
		treetest.Must(t, syscall.Kill(-cmd.Process.Pid, syscall.SIGUSR1))
		expect(t, stderr, "fastlabel: nothing is under way\n")
	}
	treetest.Must(t, cmd.Process.Signal(os.Interrupt))
	expect(t, stderr, "fastlabel: /p: incomplete (interrupted by SIGINT)")
	_ = cmd.Wait()
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

// What a part says comes out as without one: whole, and in order where both
// streams are one.
func TestApartOutput(t *testing.T) {
	list := filepath.Join(t.TempDir(), "list")
	treetest.Must(t, os.WriteFile(list, []byte("/p\n"), 0o600))
	run := func(mode, from string, join bool) (string, string) {
		file, err := os.Open(list)
		treetest.Must(t, err)
		defer file.Close()
		cmd := command(mode, "-v", "-f", from)
		if cmd.Stdin = file; from == "/dev/fd/3" {
			cmd.Stdin, cmd.ExtraFiles = nil, []*os.File{file}
		}
		var stdout, stderr bytes.Buffer
		if cmd.Stdout, cmd.Stderr = &stdout, &stderr; join {
			cmd.Stderr = &stdout
		}
		treetest.Must(t, cmd.Run())
		return stdout.String(), stderr.String()
	}
	out, err := run("talks", "-", false)
	apartOut, apartErr := run("apart talks", "/dev/fd/3", false)
	if out != apartOut || err != apartErr || strings.Count(out, "\n") != 20000 {
		t.Errorf("%d and %d lines on stdout, stderr is\n%s\nand\n%s", strings.Count(out, "\n"), strings.Count(apartOut, "\n"), err, apartErr)
	}
	joined, _ := run("apart talks", "-", true)
	at := -1
	for i, part := range []string{"relabelled \"/p/999\"", "\"/p/1000\": skipped", "relabelled \"/p/1001\"", "relabelled \"/p/19999\"", "/p: 2 entries"} {
		next := strings.Index(joined, part)
		if next < at {
			t.Errorf("line %d is not in its place", i)
		}
		at = next
	}
}

// What is named by this process's own descriptors is what the command was given,
// in a part too: stdin by any name, and not the pipes of a part.
func TestApartDescriptors(t *testing.T) {
	ownRuntime(t)
	dir := t.TempDir()
	given, pv, link := filepath.Join(dir, "given"), filepath.Join(dir, "pv"), filepath.Join(dir, "link")
	const label = "system_u:object_r:etc_t:s0:c1,c2"
	labelled(t, map[string]string{given: label})
	treetest.Must(t, os.Symlink("/proc/self/fd/0", link))
	run := func(args ...string) (int, string) {
		file, err := os.OpenFile(given, os.O_RDWR, 0)
		treetest.Must(t, err)
		defer file.Close()
		cmd := command("apart real", args...)
		cmd.Stdin, cmd.Stdout = file, file
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		_ = cmd.Run()
		return cmd.ProcessState.ExitCode(), stderr.String()
	}
	for _, name := range []string{"/dev/stdin", "/dev/fd/0", "/proc/self/fd/0", link} {
		treetest.Must(t, os.RemoveAll(pv))
		plant(t, pv, 1, 1)
		if code, said := run("--reference", name, pv); code != exit.Done {
			t.Errorf("%s: exit %d: %s", name, code, said)
		}
		only(t, pv, label, 3)
	}
	setLabel(t, pv, others)
	for _, name := range []string{"/dev/stdout", "/dev/fd/2"} {
		if code, said := run("--reference", name, pv); code != exit.Usage || !strings.Contains(said, ": it is a pipe") {
			t.Errorf("%s: exit %d: %s", name, code, said)
		}
	}
	if got, err := site.ReadLabel(pv); got != others {
		t.Errorf("the label of a pipe was taken: %q, %v", got, err)
	}
}
