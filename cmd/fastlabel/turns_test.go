// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/exit"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/wait"
	"github.com/fastlabel/fastlabel/relabel"
	"github.com/fastlabel/fastlabel/test/treetest"
)

// A probe that gets no answer does not hold up the end.
func TestProbeHangs(t *testing.T) {
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
