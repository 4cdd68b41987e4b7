// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/exit"
	"github.com/fastlabel/fastlabel/test/treetest"
)

// A reader that has stopped reading does not keep a signal or the deadline from
// ending the run, in a part or not.
func TestUnread(t *testing.T) {
	for _, mode := range []string{"talks", "apart talks"} {
		for _, stream := range []string{"stdout", "stderr", "both"} {
			for _, sig := range []syscall.Signal{0, syscall.SIGINT} {
				t.Run(fmt.Sprint(mode, " ", stream, " ", sig), func(t *testing.T) {
					t.Parallel()
					unread(t, mode, stream, sig)
				})
			}
		}
	}
}

// unread runs the command with streams that nobody reads until it ends by sig or,
// where that is 0, its deadline.
func unread(t *testing.T, mode, stream string, sig syscall.Signal) {
	r, w, err := os.Pipe()
	treetest.Must(t, err)
	defer r.Close() // unread until then
	args, code := []string{"-v", "/p"}, exit.Interrupted
	if sig == 0 {
		args, code = append(args, "--timeout", "300ms"), exit.TimedOut
	}
	cmd := command(mode, args...)
	if stream != "stderr" {
		cmd.Stdout = w
	}
	if stream != "stdout" {
		cmd.Stderr = w
	}
	treetest.Must(t, cmd.Start())
	w.Close()
	defer func() { _ = cmd.Process.Kill() }()
	treetest.Wait(t, "a pipe to be full", func() bool {
		n, err := unix.IoctlGetInt(int(r.Fd()), unix.TIOCINQ)
		return err == nil && n > 32<<10
	})
	treetest.Must(t, cmd.Process.Signal(sig))
	treetest.Returns(t, "the run", func() { _ = cmd.Wait() })
	if got := cmd.ProcessState.ExitCode(); got != code {
		t.Errorf("exit %d, not %d", got, code)
	}
}

// --timeout holds where the files that the command itself reads and writes lie on a
// filesystem that does not answer.
func TestFilesHang(t *testing.T) {
	treetest.Need(t, "root", "tmpfs", "fuse")
	dir := treetest.Fresh(t, "tmpfs")
	dead, pv := filepath.Join(dir, "dead"), filepath.Join(dir, "pv")
	for _, d := range []string{dead, pv} {
		treetest.Must(t, os.Mkdir(d, 0o755))
	}
	device, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0)
	treetest.Must(t, err)
	t.Cleanup(func() {
		device.Close() // and every call that hangs returns
		_ = syscall.Unmount(dead, syscall.MNT_DETACH)
	})
	treetest.Must(t, syscall.Mount("dead", dead, "fuse", 0, fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0", device.Fd())))
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"--reference", dead + "/f", pv}, `dead/f": getxattr: does not return`},
		{[]string{dead}, "/dead"},
		{[]string{"--exclude", dead + "/e", pv, pv, "--json"}, "deadline of 500ms reached"},
	} {
		t.Run(strings.Join(c.args, " "), func(t *testing.T) {
			t.Parallel()
			cmd := command("apart real", append([]string{"--timeout", "500ms"}, c.args...)...)
			var out strings.Builder
			cmd.Stdout, cmd.Stderr = &out, &out
			treetest.Must(t, cmd.Start())
			treetest.Returns(t, "the run", func() { _ = cmd.Wait() })
			if got := cmd.ProcessState.ExitCode(); got != exit.TimedOut || !strings.Contains(out.String(), c.says) {
				t.Errorf("exit %d: %s", got, out.String())
			}
		})
	}
}
