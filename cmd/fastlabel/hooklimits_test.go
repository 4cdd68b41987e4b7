// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/exit"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/oci"
	"github.com/fastlabel/fastlabel/relabel"
	"github.com/fastlabel/fastlabel/test/treetest"
)

// The hook stops before the runtime would kill it.
func TestHookLimits(t *testing.T) {
	self, err := os.Executable()
	treetest.Must(t, err)
	link := filepath.Join(t.TempDir(), "link")
	treetest.Must(t, os.Symlink(self, link))
	text := func(s any) string {
		b, err := json.Marshal(s)
		treetest.Must(t, err)
		return string(b)
	}
	own := `{"path":` + text(self) + `,"timeout":60}`
	other := `{"path":"/bin/sh","timeout":3}`
	for _, c := range []struct {
		hooks       string
		flag        time.Duration
		limit, wait time.Duration
	}{
		{`{}`, 0, 100 * time.Second, 2500 * time.Millisecond},
		{`{}`, 5 * time.Minute, 5 * time.Minute, 2500 * time.Millisecond},
		{`{"createRuntime":[` + other + `]}`, 0, 100 * time.Second, 2500 * time.Millisecond},
		{`{"createRuntime":[` + other + `,` + own + `]}`, 0, 55 * time.Second, 2500 * time.Millisecond},
		{`{"prestart":[` + own + `]}`, 0, 55 * time.Second, 2500 * time.Millisecond},
		{`{"poststop":[` + own + `]}`, 0, 100 * time.Second, 2500 * time.Millisecond},
		{`{"prestart":[` + own + `]}`, 10 * time.Second, 10 * time.Second, 2500 * time.Millisecond},
		{`{"prestart":[` + own + `]}`, 5 * time.Minute, 55 * time.Second, 2500 * time.Millisecond},
		{`{"prestart":[` + own + `],"createRuntime":[{"path":` + text(link) + `,"timeout":20}]}`, 0, 15 * time.Second, 2500 * time.Millisecond},
		{`{"createRuntime":[{"path":"/wrapper","args":` + text(os.Args) + `,"timeout":4}]}`, 0, 2 * time.Second, time.Second},
		{`{"createRuntime":[{"path":` + text(self) + `,"timeout":1}]}`, 0, 500 * time.Millisecond, 250 * time.Millisecond},
		{`{"createRuntime":[{"path":` + text(self) + `,"timeout":300}]}`, 0, 295 * time.Second, 2500 * time.Millisecond},
		{`{"createRuntime":[{"path":` + text(self) + `,"timeout":0}]}`, 0, 100 * time.Second, 2500 * time.Millisecond},
		{`{"createRuntime":[{"path":` + text(self) + `}]}`, 0, 100 * time.Second, 2500 * time.Millisecond},
		{`{"createRuntime":[{"path":` + text(self) + `,"timeout":9223372036854775807}]}`, 0, 24*time.Hour - 5*time.Second, 2500 * time.Millisecond},
	} {
		var config oci.Config
		treetest.Must(t, json.Unmarshal([]byte(`{"hooks":`+c.hooks+`}`), &config))
		limit, wait := limits(c.flag, config.Timeout())
		if limit != c.limit || wait != c.wait {
			t.Errorf("%s, --timeout %v: %v and %v, not %v and %v", c.hooks, c.flag, limit, wait, c.limit, c.wait)
		}
	}
}

// The runtime's own timeout, --timeout and SIGTERM end the hook with 1, and
// with how far it came.
func TestHookEnds(t *testing.T) {
	self, err := os.Executable()
	treetest.Must(t, err)
	entry := func(x *container, seconds int) {
		x.config["hooks"] = map[string]any{"createRuntime": []any{
			map[string]any{"path": "/bin/true", "timeout": 9},
			map[string]any{"path": self, "args": []string{"fastlabel", "hook"}, "timeout": seconds},
		}}
	}
	release, back := make(chan struct{}), make(chan struct{})
	stubborn := app{tree: func(_ context.Context, _, _ string, o *relabel.Options, check bool) (relabel.Report, error) {
		<-release
		o.Trace.Skip("/late", "late") // as a worker that comes back
		close(back)
		return relabel.Report{Complete: true}, nil
	}}
	terminated, cancel := context.WithCancelCause(t.Context())
	cancel(exit.Signal{Sig: os.Interrupt})
	for _, c := range []struct {
		name   string
		a      app
		ctx    context.Context
		args   []string
		change func(*container)
		want   []string
	}{
		{"entry", fake(), t.Context(), nil, func(x *container) { entry(x, 2) }, []string{
			"/v: incomplete (deadline of 1s reached), 7 entries, 7 written, 0 failed, 0.010 s; label system_u:object_r:container_file_t:s0:c1,c2; the next try resumes\n",
			"/w: not begun (deadline of 1s reached)\n",
		}},
		{"flag", fake(), t.Context(), []string{"--timeout", "1s"}, func(x *container) { entry(x, 60) }, []string{
			"/v: incomplete (deadline of 1s reached), 7 entries",
		}},
		{"signal", fake(), terminated, nil, func(*container) {}, []string{"interrupted by SIGINT"}},
		{"hung", stubborn, t.Context(), nil, func(x *container) { entry(x, 2) }, []string{
			"/v: deadline of 1s reached, and the filesystem does not answer; the next try resumes\n",
		}},
	} {
		x := newContainer(t, "relabel=true")
		x.bind("/v", "deadline")
		x.bind("/w", "next")
		c.change(x)
		state := strings.NewReader(x.write())
		var code int
		var said string
		treetest.Returns(t, c.name, func() { code, said = callHook(c.ctx, t, c.a, state, c.args...) })
		expectHook(t, c.name, code, exit.Failed, said, c.want...)
	}
	close(release)
	<-back // what is said now is nobody's
	// A pipe that nobody closes.
	r, w := io.Pipe()
	defer w.Close()
	treetest.Returns(t, "the hook", func() {
		code, said := callHook(t.Context(), t, fake(), r, "--timeout", "200ms")
		expectHook(t, "pipe", code, exit.Failed, said, "fastlabel: hook: reading the state on stdin: deadline of 200ms reached\n")
	})
}
