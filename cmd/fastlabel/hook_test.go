// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/exit"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/oci"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/report"
	"github.com/fastlabel/fastlabel/relabel"
	"github.com/fastlabel/fastlabel/test/treetest"
)

// container is one that a runtime is about to create. Sources lie in dir.
type container struct {
	t           *testing.T
	dir, bundle string
	state       map[string]any
	config      map[string]any
	mounts      []oci.Mount
}

const mountLabel = "system_u:object_r:container_file_t:s0:c1,c2"

func newContainer(t *testing.T, annotations ...string) *container {
	t.Helper()
	dir := t.TempDir()
	c := &container{t: t, dir: dir, bundle: filepath.Join(dir, "bundle")}
	for _, d := range []string{c.bundle, filepath.Join(c.bundle, "rootfs")} {
		treetest.Must(t, os.Mkdir(d, 0o700))
	}
	asked := map[string]string{}
	for _, a := range annotations {
		key, value, _ := strings.Cut(a, "=")
		if !strings.Contains(key, ".") {
			key = "io.fastlabel." + key
		}
		asked[key] = value
	}
	c.state = map[string]any{"ociVersion": "1.2.0", "id": "c1", "status": "creating", "pid": 4422, "bundle": c.bundle, "annotations": asked}
	c.config = map[string]any{"ociVersion": "1.2.0", "linux": map[string]any{"mountLabel": mountLabel}}
	c.mounts = []oci.Mount{mount("/proc", "proc", "proc"), mount("/tmp", "tmpfs", "tmpfs", "nosuid")}
	return c
}

func mount(destination, kind, source string, options ...string) oci.Mount {
	return oci.Mount{Destination: destination, Type: kind, Source: source, Options: options}
}

// bind mounts source, made as a directory if it is a bare name.
func (c *container) bind(destination, source string, options ...string) {
	c.t.Helper()
	if !strings.Contains(source, "/") {
		source = filepath.Join(c.dir, source)
		if err := os.MkdirAll(source, 0o700); err != nil {
			c.t.Fatal(err)
		}
	}
	c.mounts = append(c.mounts, mount(destination, "bind", source, options...))
}

// write writes config.json, and returns the state.
func (c *container) write() string {
	c.t.Helper()
	c.config["mounts"] = c.mounts
	config, err := json.Marshal(c.config)
	if err == nil {
		err = os.WriteFile(filepath.Join(c.bundle, "config.json"), config, 0o600)
	}
	if err != nil {
		c.t.Fatal(err)
	}
	state, err := json.Marshal(c.state)
	if err != nil {
		c.t.Fatal(err)
	}
	return string(state)
}

// run runs the hook; what it says is on stderr, with c.dir as DIR.
func (c *container) run(ctx context.Context, a app, args ...string) (int, string) {
	c.t.Helper()
	code, said := callHook(ctx, c.t, a, strings.NewReader(c.write()), args...)
	return code, strings.ReplaceAll(said, c.dir, "DIR")
}

func callHook(ctx context.Context, t *testing.T, a app, stdin io.Reader, args ...string) (int, string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code := a.run(ctx, stdin, &stdout, &stderr, append([]string{"hook"}, args...))
	if stdout.Len() > 0 {
		t.Errorf("on stdout: %s", stdout.String())
	}
	return code, stderr.String()
}

// expectHook compares a run with what it should say: nothing, or lines.
func expectHook(t *testing.T, name string, code, wantCode int, said string, want ...string) {
	t.Helper()
	if code != wantCode {
		t.Errorf("%s: exit %d, not %d: %s", name, code, wantCode, said)
	}
	if len(want) == 0 && said != "" {
		t.Errorf("%s says %s", name, said)
	}
	for _, w := range want {
		if !strings.Contains(said, w) {
			t.Errorf("%s: %q is not in:\n%s", name, w, said)
		}
	}
	for line := range strings.Lines(said) {
		if !strings.HasPrefix(line, "fastlabel: ") || !strings.HasSuffix(line, "\n") {
			t.Errorf("%s: not a line of its own: %q", name, line)
		}
	}
}

// recorder is an engine that writes down what it is asked.
type recorder struct{ asked []string }

func (r *recorder) app(dir string) app {
	return app{tree: func(_ context.Context, root, label string, o *relabel.Options, check bool) (relabel.Report, error) {
		name := strings.TrimPrefix(root, dir+"/")
		r.asked = append(r.asked, name+" "+label+" "+[]string{"none", "root", "top"}[o.Skip])
		if o.Trace.Change != nil || check || o.NoSeal || o.Exact || o.Sync {
			r.asked = append(r.asked, "with options")
		}
		return relabel.Report{Counts: relabel.Counts{Seen: 1, Right: 1}, Complete: true}, nil
	}}
}

// What each set of annotations comes to: which sources, which label.
func TestHookChooses(t *testing.T) {
	for _, c := range []struct {
		annotations string
		want        string // parted by ;
		code        int
		says        string
	}{
		{"", "", 0, ""},
		{"relabel=true", "v " + mountLabel + " root;bundle/rel " + mountLabel + " root;opt " + mountLabel + " root", 0, "/w: skipped: DIR/w is mounted read-only; io.fastlabel.relabel can list it\n"},
		{"relabel=/v", "v " + mountLabel + " root", 0, ""},
		{"relabel=/etc/hosts,/w", "file " + mountLabel + " root;w " + mountLabel + " root", 0, ""},
		{"relabel=/same,/v,/v/", "v " + mountLabel + " root", 0, ""},
		{"relabel=/w/,/rel", "w " + mountLabel + " root;bundle/rel " + mountLabel + " root", 0, ""},
		{"relabel=/v label=u:r:t:s0:c7 skip=top", "v u:r:t:s0:c7 top", 0, ""},
		{"relabel=/nothere,/v", "v " + mountLabel + " root", 1, "/nothere: no mount of this container\n"},
		{"relabel=/tmp,/v,/proc", "v " + mountLabel + " root", 1, "/tmp: no bind mount but tmpfs\n"},
		{"relabel=/vanished,/v", "v " + mountLabel + " root", 1, "/vanished: source DIR/not/here: lstat DIR/not: no such file or directory\n"},
		{"relabel=/empty,/v", "v " + mountLabel + " root", 1, "/empty: the mount has no source\n"},
	} {
		x := newContainer(t, strings.Fields(c.annotations)...)
		x.bind("/v", "v")
		x.bind("/w", "w", "rw", "ro")
		x.bind("/same", x.dir+"/v/../v/")
		x.bind("/etc/hosts", x.dir+"/file")
		x.bind("rel", "./rel")
		x.mounts = append(x.mounts, mount("/opt", "none", x.dir+"/opt", "rw", "rbind"))
		for _, d := range []string{"bundle/rel", "opt"} {
			treetest.Must(t, os.Mkdir(filepath.Join(x.dir, d), 0o700))
		}
		treetest.Must(t, os.WriteFile(x.dir+"/file", nil, 0o600))
		if !strings.Contains(c.annotations, "true") || strings.Contains(c.annotations, ",") {
			x.bind("/vanished", x.dir+"/not/here")
			x.mounts = append(x.mounts, mount("/empty", "bind", ""))
		}
		var r recorder
		code, said := x.run(t.Context(), r.app(x.dir))
		var lines []string
		if c.says != "" {
			lines = append(lines, "fastlabel: container c1: "+c.says)
		}
		expectHook(t, c.annotations, code, c.code, said, lines...)
		if got := strings.Join(r.asked, ";"); got != c.want {
			t.Errorf("%s: %s, not %s", c.annotations, got, c.want)
		}
	}
}

// The annotations are the state's, or config.json's where it has none; a
// container without a label is nobody's business; crun's state is as good.
func TestHookStates(t *testing.T) {
	run := func(name, want string, change func(*container)) {
		t.Helper()
		x := newContainer(t, "relabel=true")
		x.bind("/v", "v")
		change(x)
		var r recorder
		code, said := x.run(t.Context(), r.app(x.dir))
		expectHook(t, name, code, exit.Done, said)
		if got := strings.Join(r.asked, ";"); got != want {
			t.Errorf("%s: %q, not %q", name, got, want)
		}
	}
	const done = "v " + mountLabel + " root"
	run("crun", done, func(x *container) {
		x.state["ociVersion"], x.state["status"], x.state["root"] = "1.0", "created", x.bundle+"/rootfs"
	})
	run("from config.json", done, func(x *container) {
		x.config["annotations"] = x.state["annotations"]
		delete(x.state, "annotations")
	})
	run("empty in the state", done, func(x *container) {
		x.config["annotations"] = x.state["annotations"]
		x.state["annotations"] = map[string]string{}
	})
	run("the state's win", "", func(x *container) {
		x.config["annotations"] = x.state["annotations"]
		x.state["annotations"] = map[string]string{"other": "x"}
	})
	run("nothing asked, no bundle", "", func(x *container) {
		x.state["annotations"] = map[string]string{"other": "x"}
		x.state["bundle"] = "/nothere"
	})
	run("no label", "", func(x *container) { delete(x.config, "linux") })
}

// A state that is none ends the hook with 1 and a line, and touches nothing.
func TestHookRefusesStates(t *testing.T) {
	broken := app{tree: func(context.Context, string, string, *relabel.Options, bool) (relabel.Report, error) {
		t.Error("the engine was asked")
		return relabel.Report{}, errors.New("asked")
	}}
	code, said := callHook(t.Context(), t, broken, endless{})
	expectHook(t, "no end", code, exit.Failed, said, "fastlabel: hook: reading the state on stdin: larger than 4,194,304 bytes\n")

	x := newContainer(t, "relabel=true")
	x.state["id"], x.state["bundle"] = "c\n1\x1b[31m", "/not\nhere"
	code, said = x.run(t.Context(), broken)
	expectHook(t, "escapes", code, exit.Failed, said, `fastlabel: container "c\n1\x1b[31m": bundle: lstat /not\nhere: `)
}

type endless struct{}

func (endless) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = '{'
	}
	return len(b), nil
}

// What goes wrong beneath one destination is told with its name and ends in
// 1, and the next is done all the same.
func TestHookTells(t *testing.T) {
	x := newContainer(t, "relabel=true")
	for _, name := range []string{"failed", "missing", "refused", "unsupported", "unfinished", "every", "many", "one"} {
		x.bind("/to/"+name, name)
	}
	x.bind("/twice", x.dir+"/failed")
	code, said := x.run(t.Context(), fake())
	text := "fastlabel: container c1: /to/"
	expectHook(
		t, "all", code, exit.Failed, said,
		"fastlabel: container c1: /to/failed, /twice: \"DIR/failed/na\\xffme\\n\": setxattrat: operation not permitted\n",
		"/twice: \"DIR/failed\": syncfs: input/output error\n",
		text+"missing: \"DIR/missing\": openat: no such file or directory\n",
		text+"refused: skipped: \"DIR/refused\": relabelling is not allowed\n",
		text+"unsupported: \"DIR/unsupported\": getxattrat: operation not supported\n",
		text+"unsupported: skipped: no label can be set there\n",
		text+"unfinished: incomplete (no commit), 2 entries",
		text+"every: waiting for another relabel of this volume\n",
		text+"every: \"DIR/every/mnt\\n\": skipped: mounted read-only\n",
		text+"every: the policy refused the seal\n",
		text+"many: 1,214 more failures\n",
		text+"many: incomplete, 1,235 entries, 0 written, 1,234 failed, 0.010 s; label ",
	)
	if strings.Contains(said, "/to/one") || strings.Count(said, "read-only file system") != report.MaxListed {
		t.Errorf("too much is said:\n%s", said)
	}
	code, said = x.run(t.Context(), fake(), "-v")
	expectHook(t, "-v", code, exit.Failed, said, text+"one: 1 entry, 0 written, 1 right, 0 failed")

	// No label is to be had on a filesystem: that alone stops no container.
	x = newContainer(t, "relabel=/to/unsupported")
	x.bind("/to/unsupported", "unsupported")
	code, said = x.run(t.Context(), fake())
	expectHook(t, "unsupported", code, exit.Done, said, "no label can be set there\n")
	x = newContainer(t, "relabel=/to/refused")
	x.bind("/to/refused", "refused")
	code, said = x.run(t.Context(), fake())
	expectHook(t, "refused", code, exit.Failed, said, "relabelling is not allowed\n")
}
