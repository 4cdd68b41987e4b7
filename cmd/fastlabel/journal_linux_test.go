// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/exit"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/report"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/stream"
	"github.com/fastlabel/fastlabel/relabel"
	"github.com/fastlabel/fastlabel/test/treetest"
)

// In the journal each line has its priority; elsewhere none has, whatever a parent's
// environment says.
func TestJournalStream(t *testing.T) {
	run := func(mode string, ours bool, args ...string) string {
		pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
		treetest.Must(t, err)
		journal, stderr := os.NewFile(uintptr(pair[0]), "journal"), os.NewFile(uintptr(pair[1]), "stderr")
		defer journal.Close()
		info, err := stderr.Stat()
		treetest.Must(t, err)
		st := info.Sys().(*syscall.Stat_t)
		if !ours {
			st.Ino++
		}
		cmd := exec.Command(os.Args[0], args...)
		cmd.Env = append(os.Environ(), "FASTLABEL_TEST_AS="+mode, fmt.Sprintf("JOURNAL_STREAM=%d:%d", st.Dev, st.Ino))
		cmd.Stderr = stderr
		treetest.Must(t, cmd.Start())
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
		{"/etc", []string{"<3>fastlabel: /etc: refused: "}},
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
		report.Reporter{Sink: &report.People{Out: stream.NewSink(io.Discard), Err: &b, Journal: true}}.Result(report.Result{Code: code, Report: relabel.Report{Root: "/p", Counts: relabel.Counts{Seen: 1}}})
		if !strings.HasPrefix(b.String(), level+"fastlabel: /p: ") {
			t.Errorf("%d: %q, not %q", code, b.String(), level)
		}
	}
}
