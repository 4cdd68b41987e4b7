// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/exit"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/report"
	"github.com/fastlabel/fastlabel/relabel"
)

// Every way a run can end is in the file, with the code of each PATH.
func TestMetrics(t *testing.T) {
	for _, c := range []struct {
		args string
		code int
		want string // lines, without "fastlabel_last_run_"
	}{
		{"/one", exit.Done, `exit_code{command="label",path="/one"} 0
entries{command="label",path="/one",result="written"} 0
entries{command="label",path="/one",result="right"} 1
entries{command="label",path="/one",result="failed"} 0
duration_seconds{command="label",path="/one"} 0.01`},
		{"-q --json /failed /refused /one", exit.Failed, `exit_code{command="label",path="/failed"} 1
entries{command="label",path="/failed",result="written"} 2
entries{command="label",path="/failed",result="failed"} 1
exit_code{command="label",path="/refused"} 3
exit_code{command="label",path="/one"} 0`},
		{"-n /changes", exit.Differs, `exit_code{command="label",path="/changes"} 4
entries{command="label",path="/changes",result="differs"} 3`},
		{"verify /differs", exit.Differs, `exit_code{command="verify",path="/differs"} 4
entries{command="verify",path="/differs",result="differs"} 3`},
		{"--timeout 1ns /deadline /next", exit.TimedOut, `exit_code{command="label",path="/deadline"} 124
exit_code{command="label",path="/next"} 124`},
		{"probe /right /wrong /missing", exit.Failed, `exit_code{command="probe",path="/right"} 0
exit_code{command="probe",path="/wrong"} 4
exit_code{command="probe",path="/missing"} 1`},
		// Nothing was begun.
		{"-t a:b /one", exit.Usage, `exit_code{command="label",path="/one"} 2`},
		{"-f /nothere", exit.Usage, `exit_code{command="label",path=""} 2`},
		{"-f /dev/null", exit.Done, ``},
	} {
		file := filepath.Join(t.TempDir(), "x.prom")
		if err := os.WriteFile(file, []byte("# HELP fastlabel_x of the last run"), 0o600); err != nil {
			t.Fatal(err)
		}
		var out, stderr bytes.Buffer
		code := fake().run(t.Context(), nil, &out, &stderr, append(strings.Fields(c.args), "--metrics", file))
		text, err := os.ReadFile(file)
		if code != c.code || err != nil || strings.Contains(string(text), "of the last run") {
			t.Errorf("%s: exit %d, %v\n%s%s", c.args, code, err, stderr.String(), text)
		}
		codes := 0
		for line := range strings.Lines(c.want + "\n") {
			if line != "\n" && !strings.Contains(string(text), "\nfastlabel_last_run_"+line) {
				t.Errorf("%s: lacks %s in\n%s", c.args, line, text)
			}
			codes += strings.Count(line, "exit_code")
		}
		if n := strings.Count(string(text), "\nfastlabel_last_run_exit_code{"); n != codes {
			t.Errorf("%s: %d codes, not %d:\n%s", c.args, n, codes, text)
		}
	}
}

// A file that cannot be written is told before the work; one that could no more
// be written after it costs the exit code.
func TestMetricsUnwritable(t *testing.T) {
	for _, file := range []string{"/nothere/x.prom", os.DevNull, t.TempDir()} {
		got := transcript(app{}, []call{{args: []string{"--metrics", file, "/one"}}}) // no engine: it must not be asked
		if !strings.HasSuffix(got, "; nothing was begun\nexit 2\n\n") || !strings.Contains(got, "2> fastlabel: --metrics: ") {
			t.Error(got)
		}
	}
	dir := filepath.Join(t.TempDir(), "dir")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	a := fake()
	done := a.tree
	a.tree = func(ctx context.Context, root, label string, o *relabel.Options, check bool) (relabel.Report, error) {
		if err := os.Remove(dir); err != nil {
			t.Error(err)
		}
		return done(ctx, root, label, o, check)
	}
	got := transcript(a, []call{{args: []string{"--metrics", filepath.Join(dir, "x.prom"), "/one"}}})
	if !strings.Contains(got, "2> fastlabel: --metrics: ") || !strings.HasSuffix(got, "\nexit 1\n\n") {
		t.Error(got)
	}
}

// Of one PATH twice there is one, and it is the worse.
func TestMetricsTwice(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.prom")
	a := newAccount(&settings{metrics: file})
	a.Reporter = &report.People{Err: new(bytes.Buffer), Quiet: true}
	for _, code := range []int{exit.Differs, exit.Failed, exit.Done} {
		r := report.Result{Code: code}
		r.Root = "/p"
		a.Result(r)
	}
	if code := a.write(t.Context(), nil, exit.Failed, nil); code != exit.Failed {
		t.Error(code)
	}
	text, err := os.ReadFile(file)
	if err != nil || strings.Count(string(text), "exit_code{") != 1 || !strings.Contains(string(text), `exit_code{command="label",path="/p"} 1`) {
		t.Errorf("%v: %s", err, text)
	}
}
