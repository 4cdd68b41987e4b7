// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/exit"
	"github.com/fastlabel/fastlabel/test/treetest"
)

// A reader that has stopped reading does not keep a signal or the deadline from
// ending the run, in a part or not; metrics are left all the same.
func TestUnread(t *testing.T) {
	for _, mode := range []string{"talks", "apart talks"} {
		for _, stream := range []string{"stdout", "stderr", "both"} {
			for _, sig := range []syscall.Signal{0, syscall.SIGINT} {
				t.Run(fmt.Sprint(mode, " ", stream, " ", sig), func(t *testing.T) {
					t.Parallel()
					// Writing the metrics has a third of a second, or they are left out: a
					// machine that is too busy for that now is not always.
					for try := 1; !metricsUnread(t, mode, stream, sig); try++ {
						if try == 5 {
							t.Fatal("five runs left no metrics")
						}
					}
				})
			}
		}
	}
}

// metricsUnread runs the command with streams that nobody reads until it ends by sig
// or, where that is 0, its deadline, and says whether it has left metrics.
func metricsUnread(t *testing.T, mode, stream string, sig syscall.Signal) bool {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close() // unread until then
	file := filepath.Join(t.TempDir(), "x.prom")
	args, code := []string{"--metrics", file, "-v", "/p"}, exit.Interrupted
	if sig == 0 {
		args, code = append(args, "--timeout", "300ms"), exit.TimedOut
	}
	if stream != "stdout" {
		args = append(args, "--log-level", "debug")
	}
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), "FASTLABEL_TEST_AS="+mode)
	if stream != "stderr" {
		cmd.Stdout = w
	}
	if stream != "stdout" {
		cmd.Stderr = w
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	defer func() { _ = cmd.Process.Kill() }()
	treetest.Wait(t, "a pipe to be full", func() bool {
		n, err := unix.IoctlGetInt(int(r.Fd()), unix.TIOCINQ)
		return err == nil && n > 32<<10 || sig == 0
	})
	if err := cmd.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
	treetest.Returns(t, "the run", func() { _ = cmd.Wait() })
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return false
	}
	if got := cmd.ProcessState.ExitCode(); got != code {
		t.Errorf("exit %d, not %d", got, code)
	}
	if err != nil || !strings.Contains(string(text), fmt.Sprintf(`{command="label",path="/p"} %d`, code)) {
		t.Errorf("%v: %s", err, text)
	}
	return true
}

// --timeout holds where the files that the command itself reads and writes lie on a
// filesystem that does not answer.
func TestFilesHang(t *testing.T) {
	treetest.Need(t, "root", "tmpfs", "fuse")
	dir := treetest.Fresh(t, "tmpfs")
	dead, pv := filepath.Join(dir, "dead"), filepath.Join(dir, "pv")
	for _, d := range []string{dead, pv} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	device, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		device.Close() // and every call that hangs returns
		_ = syscall.Unmount(dead, syscall.MNT_DETACH)
	})
	if err := syscall.Mount("dead", dead, "fuse", 0, fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0", device.Fd())); err != nil {
		t.Fatal(err)
	}
	live := filepath.Join(dir, "x.prom")
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"--metrics", dead + "/x.prom", pv}, `dead/x.prom": openat: does not return`},
		{[]string{"probe", "--metrics", dead + "/x.prom", pv}, ""}, // which has no --timeout
		{[]string{"--reference", dead + "/f", pv}, `dead/f": getxattr: does not return`},
		{[]string{"--metrics", live, dead}, "/dead"},
		{[]string{"--metrics", live, "--exclude", dead + "/e", pv, pv, "--json"}, "deadline of 500ms reached"},
	} {
		t.Run(strings.Join(c.args, " "), func(t *testing.T) {
			t.Parallel()
			args := append([]string{"--timeout", "500ms"}, c.args...)
			if c.args[0] == "probe" {
				args = c.args
			}
			cmd := exec.Command(os.Args[0], args...)
			cmd.Env = append(os.Environ(), "FASTLABEL_TEST_AS=apart real")
			var out strings.Builder
			cmd.Stdout, cmd.Stderr = &out, &out
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			if c.args[0] == "probe" {
				time.AfterFunc(500*time.Millisecond, func() { _ = cmd.Process.Signal(os.Interrupt) })
			}
			treetest.Returns(t, "the run", func() { _ = cmd.Wait() })
			code := exit.TimedOut
			if c.args[0] == "probe" {
				code = exit.Interrupted
			}
			if got := cmd.ProcessState.ExitCode(); got != code || !strings.Contains(out.String(), c.says) {
				t.Errorf("exit %d: %s", got, out.String())
			}
			if c.says == "/dead" {
				if text, err := os.ReadFile(live); err != nil || !strings.Contains(string(text), `"} 124`) {
					t.Errorf("%v: %s", err, text)
				}
			}
		})
	}
}
