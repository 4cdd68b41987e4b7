// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/exit"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/wait"
	"github.com/fastlabel/fastlabel/relabel"
	"github.com/fastlabel/fastlabel/test/treetest"
)

// A reader that has stopped reading does not keep a signal or, where that is 0, the deadline
// from ending the run, in a part or not.
func TestUnread(t *testing.T) {
	for _, mode := range []string{"talks", "apart talks"} {
		for _, sig := range []syscall.Signal{0, syscall.SIGINT} {
			t.Run(fmt.Sprint(mode, " ", sig), func(t *testing.T) {
				t.Parallel()
				r, w, err := os.Pipe()
				treetest.Must(t, err)
				defer r.Close() // unread until then
				args, code := []string{"-v", "/p"}, exit.Interrupted
				if sig == 0 {
					args, code = append(args, "--timeout", "300ms"), exit.TimedOut
				}
				cmd := command(mode, args...)
				cmd.Stdout, cmd.Stderr = w, w
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
			})
		}
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

// A probe that gets no answer does not hold up the end. In a time of its own.
func TestProbeHangs(t *testing.T) { synctest.Test(t, probeHangs) }

func probeHangs(t *testing.T) {
	a := fake()
	ctx, cancel := context.WithCancelCause(t.Context())
	a.inspect = func(string, string, relabel.Skip) (relabel.RootState, error) {
		<-t.Context().Done()
		return relabel.RootState{}, nil
	}
	time.AfterFunc(2*wait.Patience, func() { cancel(exit.Signal{Sig: syscall.SIGTERM}) })
	var out, err bytes.Buffer
	var code int
	treetest.Returns(t, "probe", func() { code = a.run(ctx, nil, &out, &err, []string{"probe", "/hung"}) })
	want := "fastlabel: /hung: waiting for the filesystem\nfastlabel: \"/hung\": the filesystem does not answer\n"
	if code != exit.Terminated || out.String() != "" || err.String() != want {
		t.Errorf("exit %d, %q, %q", code, out.String(), err.String())
	}
}

// What a signal leaves undone of very many PATHs is one line, and the one that resumes.
func TestManyPathsEnd(t *testing.T) {
	const n = 30_000
	ctx, cancel := context.WithCancelCause(t.Context())
	runs := 0
	a := app{name: "fastlabel", tree: func(ctx context.Context, _, _ string, _ *relabel.Options, _ bool) (relabel.Report, error) {
		runs++
		cancel(exit.Signal{Sig: os.Interrupt})
		return relabel.Report{}, ctx.Err()
	}}
	var args []string
	for i := range n {
		args = append(args, fmt.Sprint("/none/", i))
	}
	var stdout, stderr bytes.Buffer
	code, out := a.run(ctx, nil, &stdout, &stderr, args), stderr.String()
	told := strings.Count(out, "\n")
	if code != exit.Interrupted || runs != 1 || told != 3 || !strings.Contains(out, "\nfastlabel: 29,999 PATHs were not begun (interrupted by SIGINT)\n") || !strings.HasSuffix(out, " /none/29999\n") {
		t.Errorf("exit %d after %d runs, %d lines: %.400s", code, runs, told, out)
	}
	asked := 0
	ctx, cancel = context.WithCancelCause(t.Context())
	a.inspect = func(string, string, relabel.Skip) (relabel.RootState, error) {
		asked++
		cancel(exit.Signal{Sig: os.Interrupt})
		return relabel.RootState{Labelled: true}, nil
	}
	stderr.Reset()
	code, out = a.run(ctx, nil, &stdout, &stderr, append([]string{"probe"}, args...)), stderr.String()
	if code != exit.Interrupted || asked != 1 || out != "fastlabel: 29,999 PATHs were not begun (interrupted by SIGINT)\n" {
		t.Errorf("probe: exit %d after %d, %.400s", code, asked, out)
	}
}
