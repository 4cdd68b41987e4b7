// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/exit"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/report"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/stream"
	"github.com/fastlabel/fastlabel/relabel"
)

// The manager is told once a second, and its patience is stretched while the work
// moves and while the disk is waited for, and not while it hangs.
func TestManagerIsTold(t *testing.T) {
	const moves, hangs, syncs = 10, 15, 5 // seconds of each
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var when []time.Duration
		var what []string
		a := fake()
		a.notify = func(assignments ...string) error {
			when, what = append(when, time.Since(began)), append(what, strings.Join(assignments, "\n"))
			return io.ErrClosedPipe // it makes no difference
		}
		a.tree = func(_ context.Context, root, _ string, o *relabel.Options, check bool) (relabel.Report, error) {
			begins(o, func() relabel.State {
				s := relabel.State{Seen: min(time.Since(began), moves*time.Second).Milliseconds(), Path: root + "\nREADY=1"}
				if time.Since(began) > (moves+hangs)*time.Second {
					s.Path, s.Call = "", "syncfs"
				}
				return s
			})
			time.Sleep((moves+hangs+syncs)*time.Second + time.Second/2)
			return relabel.Report{Root: root, Seen: 1, Written: 1, Complete: true}, nil
		}
		if code := a.run(t.Context(), nil, io.Discard, io.Discard, []string{"/p"}); code != exit.Done {
			t.Error(code)
		}
		for i, text := range what {
			if at := time.Duration(i+1) * time.Second; when[i] != at {
				t.Errorf("message %d after %v", i, when[i])
			}
			if !strings.HasPrefix(text, "STATUS=/p: ") || strings.Contains(text, "\nREADY") {
				t.Errorf("said %q", text)
			}
			stretched := strings.Contains(text, fmt.Sprintf("\nEXTEND_TIMEOUT_USEC=%d", stretch.Microseconds()))
			if want := i < moves || i >= moves+hangs; stretched != want {
				t.Errorf("after %v: stretched %v", when[i], stretched)
			}
		}
		if len(what) != moves+hangs+syncs {
			t.Errorf("told %d times", len(what))
		}
	})
}

// A real socket hears a process, and the one that the manager executed says when
// it is done; one that a script runs does not, nor one that failed.
func TestReady(t *testing.T) {
	for _, c := range []struct {
		mode, path string
		executed   bool
		ready      bool
	}{
		{"done", "/p", true, true},
		{"apart done", "/p", true, true},
		{"done", "/p", false, false},
		{"real", "/nothere", true, false},
	} {
		name := filepath.Join(t.TempDir(), "notify")
		l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
		if err != nil {
			t.Fatal(err)
		}
		script := `exec "$0" "$@"`
		if c.executed {
			script = "SYSTEMD_EXEC_PID=$$ " + script
		}
		cmd := exec.Command("sh", "-c", script, os.Args[0], c.path)
		cmd.Env = append(os.Environ(), "FASTLABEL_TEST_AS="+c.mode, "NOTIFY_SOCKET="+name)
		_ = cmd.Run() // not found is a failure
		if err := l.SetReadDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		var heard []string
		for buf := make([]byte, 4096); ; {
			n, err := l.Read(buf)
			if err != nil {
				break
			}
			heard = append(heard, string(buf[:n]))
		}
		l.Close()
		if ready := slices.Contains(heard, "READY=1"); ready != c.ready || len(heard) > 1 {
			t.Errorf("%+v: heard %q", c, heard)
		}
	}
}

// In the journal each line has its priority; elsewhere none has, whatever a parent's
// environment says.
func TestJournalStream(t *testing.T) {
	run := func(mode string, ours bool, args ...string) string {
		pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		journal, stderr := os.NewFile(uintptr(pair[0]), "journal"), os.NewFile(uintptr(pair[1]), "stderr")
		defer journal.Close()
		info, err := stderr.Stat()
		if err != nil {
			t.Fatal(err)
		}
		st := info.Sys().(*syscall.Stat_t)
		if !ours {
			st.Ino++
		}
		cmd := exec.Command(os.Args[0], args...)
		cmd.Env = append(os.Environ(), "FASTLABEL_TEST_AS="+mode, fmt.Sprintf("JOURNAL_STREAM=%d:%d", st.Dev, st.Ino))
		cmd.Stderr = stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		stderr.Close()
		var text bytes.Buffer
		_, _ = text.ReadFrom(journal)
		_ = cmd.Wait()
		return text.String()
	}
	for _, c := range []struct {
		args string
		want []string // how each line begins
	}{
		{"/nothere", []string{"<3>fastlabel: /nothere: "}},
		{"-q /nothere", []string{"<3>fastlabel: /nothere: "}},
		{"/etc", []string{`<3>fastlabel: "/etc": `}},
		{"-f /dev/null", []string{"<6>fastlabel: /dev/null: "}},
	} {
		for _, mode := range []string{"real", "apart real"} {
			got := run(mode, true, strings.Fields(c.args)...)
			lines := strings.Split(strings.TrimSuffix(got, "\n"), "\n")
			if !slices.EqualFunc(lines, c.want, strings.HasPrefix) {
				t.Errorf("%s: %s: %q", mode, c.args, lines)
			}
			if got := run(mode, false, strings.Fields(c.args)...); strings.Contains(got, "<") {
				t.Errorf("%s: %s: not the journal: %q", mode, c.args, got)
			}
		}
	}
}

// The line of a result has the priority of its exit code.
func TestResultPriority(t *testing.T) {
	for code, level := range map[int]string{exit.Done: "<6>", exit.Differs: "<5>", exit.Failed: "<3>", exit.Refused: "<3>", exit.TimedOut: "<4>", exit.Terminated: "<4>"} {
		var b bytes.Buffer
		(&report.People{Out: stream.NewSink(io.Discard), Err: &b, Journal: true}).Result(report.Result{Begun: true, Code: code, Report: relabel.Report{Root: "/p", Seen: 1}})
		if !strings.HasPrefix(b.String(), level+"fastlabel: /p: ") {
			t.Errorf("%d: %q, not %q", code, b.String(), level)
		}
	}
}
