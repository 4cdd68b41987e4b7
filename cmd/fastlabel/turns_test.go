// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/exit"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/report"
	"github.com/fastlabel/fastlabel/relabel"
	"github.com/fastlabel/fastlabel/test/treetest"
)

// Past a PATH that stalls the next are done.
func TestStall(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, dir := range []string{"a", "c", "d"} {
		treetest.Must(t, os.MkdirAll(dir, 0o700))
	}
	var mu sync.Mutex
	var did []string
	others := make(chan struct{})
	a := app{tree: func(_ context.Context, root, _ string, o *relabel.Options, check bool) (relabel.Report, error) {
		if root == "a" {
			o.Trace.Stall([]relabel.HungCall{{Call: "getxattrat", Path: "a/x"}})
			<-others
		}
		mu.Lock()
		defer mu.Unlock()
		if did = append(did, root); len(did) == 2 {
			close(others)
		}
		for range report.MaxListed + 5 { // to be counted at once
			o.Trace.Failure(errors.New("x"))
		}
		return relabel.Report{Counts: relabel.Counts{Seen: 100, Failed: report.MaxListed + 5}}, errors.New("x")
	}}
	got := transcript(a, calls("-v=0 a c d"))
	if strings.Join(did, " ") != "c d a" {
		t.Errorf("did %q", did)
	}
	for _, root := range []string{"a", "c", "d"} {
		if !strings.Contains(got, root+": 5 more failures") {
			t.Errorf("%s was not counted:\n%s", root, got)
		}
	}
	if !strings.Contains(got, "2> fastlabel: a: waiting for getxattrat \"a/x\"\n") {
		t.Error(got)
	}
}

// A probe that gets no answer holds up neither the others nor the end.
func TestProbeHangs(t *testing.T) {
	a := fake()
	var mu sync.Mutex
	asked := map[string]bool{}
	ctx, cancel := context.WithCancelCause(t.Context())
	a.inspect = func(root, _ string, _ relabel.Skip) (relabel.RootState, error) {
		mu.Lock()
		asked[root] = true
		mu.Unlock()
		if root == "/hung" {
			<-t.Context().Done()
		}
		cancel(exit.Signal{Sig: syscall.SIGTERM})
		return relabel.RootState{Labelled: true}, nil
	}
	var out, err bytes.Buffer
	var code int
	treetest.Returns(t, "probe", func() { code = a.run(ctx, nil, &out, &err, []string{"probe", "/hung", "/p"}) })
	mu.Lock()
	defer mu.Unlock()
	want := "fastlabel: /hung: waiting for the filesystem\nfastlabel: \"/hung\": the filesystem does not answer\n"
	if code != exit.Terminated || !asked["/p"] || out.String() != "/p: labelled: the top directory has this label\n" || err.String() != want {
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
