// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/syslog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

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
		treetest.Must(c.t, os.MkdirAll(source, 0o700))
	}
	c.mounts = append(c.mounts, mount(destination, "bind", source, options...))
}

// write writes config.json, and returns the state.
func (c *container) write() string {
	c.t.Helper()
	c.config["mounts"] = c.mounts
	config, err := json.Marshal(c.config)
	treetest.Must(c.t, err)
	treetest.Must(c.t, os.WriteFile(filepath.Join(c.bundle, "config.json"), config, 0o600))
	state, err := json.Marshal(c.state)
	treetest.Must(c.t, err)
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

// expect runs the hook, compares it as expectHook does, and returns what it says.
func (c *container) expect(a app, args string, code int, want ...string) string {
	c.t.Helper()
	got, said := c.run(c.t.Context(), a, strings.Fields(args)...)
	expectHook(c.t, "hook "+args, got, code, said, want...)
	return said
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
		treetest.Must(t, os.Symlink("v", x.dir+"/link"))
		x.bind("/same", x.dir+"/link/../v/")
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
		var lines []string
		if c.says != "" {
			lines = append(lines, "fastlabel: container c1: "+c.says)
		}
		x.expect(r.app(x.dir), "", c.code, lines...)
		if got := strings.Join(r.asked, ";"); got != c.want {
			t.Errorf("%s: %s, not %s", c.annotations, got, c.want)
		}
	}
}

// The annotations are the state's, or config.json's where it has none. Where they ask for
// nothing, config.json is not read.
func TestHookStates(t *testing.T) {
	x := newContainer(t, "relabel=true")
	x.bind("/v", "v")
	x.config["annotations"] = x.state["annotations"]
	var r recorder
	x.state["annotations"] = map[string]string{}
	x.expect(r.app(x.dir), "", exit.Done)
	x.state["annotations"], x.state["bundle"] = map[string]string{"other": "x"}, "/nothere"
	x.expect(r.app(x.dir), "", exit.Done)
	if !slices.Equal(r.asked, []string{"v " + mountLabel + " root"}) {
		t.Errorf("asked for %q", r.asked)
	}
}

// A state that is none ends the hook with 1 and a line, and touches nothing.
func TestHookRefusesStates(t *testing.T) {
	broken := app{tree: func(context.Context, string, string, *relabel.Options, bool) (relabel.Report, error) {
		t.Error("the engine was asked")
		return relabel.Report{}, errors.New("asked")
	}}
	endless, err := os.Open("/dev/zero")
	treetest.Must(t, err)
	defer endless.Close()
	code, said := callHook(t.Context(), t, broken, endless)
	expectHook(t, "no end", code, exit.Failed, said, "fastlabel: hook: reading the state on stdin: larger than 4,194,304 bytes\n")

	x := newContainer(t, "relabel=true")
	x.state["id"], x.state["bundle"] = "c\n1\x1b[31m", "/not\nhere"
	x.expect(broken, "", exit.Failed, `fastlabel: container "c\n1\x1b[31m": bundle: lstat /not\nhere: `)
}

// What goes wrong beneath one destination is told with its name and ends in
// 1, and the next is done all the same.
func TestHookTells(t *testing.T) {
	x := newContainer(t, "relabel=true")
	for _, name := range []string{"failed", "missing", "refused", "unsupported", "unfinished", "every", "many", "one"} {
		x.bind("/to/"+name, name)
	}
	x.bind("/twice", x.dir+"/failed")
	const text = "fastlabel: container c1: /to/"
	said := x.expect(
		fake(), "", exit.Failed,
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
	x.expect(fake(), "-v", exit.Failed, text+"one: 1 entry, 0 written, 1 right, 0 failed")

	// No label is to be had on a filesystem: that alone stops no container.
	only := func(name string, code int, says string) {
		x := newContainer(t, "relabel=/to/"+name)
		x.bind("/to/"+name, name)
		x.expect(fake(), "", code, says)
	}
	only("unsupported", exit.Done, "no label can be set there\n")
	only("refused", exit.Failed, "relabelling is not allowed\n")
}

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
		{`{"poststop":[` + own + `]}`, 0, 100 * time.Second, 2500 * time.Millisecond},
		{`{"prestart":[` + own + `]}`, 10 * time.Second, 10 * time.Second, 2500 * time.Millisecond},
		{`{"prestart":[` + own + `]}`, 5 * time.Minute, 55 * time.Second, 2500 * time.Millisecond},
		{`{"prestart":[` + own + `],"createRuntime":[{"path":` + text(link) + `,"timeout":20}]}`, 0, 15 * time.Second, 2500 * time.Millisecond},
		{`{"createRuntime":[{"path":"/wrapper","args":` + text(os.Args) + `,"timeout":4}]}`, 0, 2 * time.Second, time.Second},
		{`{"createRuntime":[{"path":` + text(self) + `,"timeout":1}]}`, 0, 500 * time.Millisecond, 250 * time.Millisecond},
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
// with how far it came. In a time of its own.
func TestHookEnds(t *testing.T) { synctest.Test(t, hookEnds) }

func hookEnds(t *testing.T) {
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
	for ctx, why := range map[context.Context]string{t.Context(): "deadline of 200ms reached", terminated: "interrupted by SIGINT"} {
		treetest.Returns(t, "the hook", func() {
			code, said := callHook(ctx, t, fake(), r, "--timeout", "200ms")
			expectHook(t, "pipe", code, exit.Failed, said, "fastlabel: hook: reading the state on stdin: "+why+"\n")
		})
	}
}

// Each line goes to the journal as well; one that does not listen holds
// nobody.
func TestHookJournal(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	treetest.Must(t, err)
	defer l.Close()
	x := newContainer(t, "relabel=true")
	x.bind("/v", x.dir+"/gone")
	var stderr strings.Builder
	h := &hook{app: fake(), settings: &settings{}, lines: &hookLines{stderr: &stderr, journal: &journal{path: path}}}
	if code := h.run(context.Background(), strings.NewReader(x.write())); code != exit.Failed {
		t.Errorf("exit %d", code)
	}
	buf := make([]byte, 4096)
	n, err := l.Read(buf)
	treetest.Must(t, err)
	const text = "source /v/gone: lstat /v/gone: no such file or directory"
	if got := strings.ReplaceAll(stderr.String(), x.dir, "/v"); got != "fastlabel: container c1: /v: "+text+"\n" {
		t.Error(got)
	}
	line := `{"message_type":"error","container":"c1","destination":"/v","path":"","text":"` + text + `"}`
	if got := strings.ReplaceAll(string(buf[:n]), x.dir, "/v"); !strings.HasPrefix(got, "<27>") || !strings.HasSuffix(got, fmt.Sprintf(" fastlabel[%d]: %s\n", os.Getpid(), line)) {
		t.Errorf("%q, not %q", got, line)
	}

	// Nobody reads: the queue fills, and one line alone is waited for.
	j := &journal{path: path}
	for range 3000 {
		j.write(syslog.LOG_ERR, "full")
	}
	if !j.dead {
		t.Error("a full queue was waited for again and again")
	}
	if _, err := l.Read(buf); err != nil { // there is room again
		t.Fatal(err)
	}
	arrives(t, l, j, "after the full queue")
	// A line that is too long for a datagram is one lost line, and so is what is
	// written while the reader is away.
	j.write(syslog.LOG_ERR, strings.Repeat("x", 4<<20))
	arrives(t, l, j, "after the long line")
	l.Close()
	j.write(syslog.LOG_ERR, "away")
	treetest.Must(t, os.Remove(path))
	if l, err = net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"}); err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	arrives(t, l, j, "after the reader's absence")
}

// arrives has a line written, and reads until that comes.
func arrives(t *testing.T, l *net.UnixConn, j *journal, line string) {
	t.Helper()
	buf := make([]byte, 4096)
	j.dead = false // also by a slow machine
	j.write(syslog.LOG_ERR, line)
	_ = l.SetReadDeadline(time.Now().Add(treetest.Patience))
	for {
		if n, err := l.Read(buf); err != nil || strings.HasSuffix(string(buf[:n]), "]: "+line+"\n") {
			if err != nil {
				t.Errorf("%s does not arrive: %v", line, err)
			}
			return
		}
	}
}

// A pod's author floods no log: by destinations, by mounts, by what fails. In a time of its
// own, in which a journal that reads is never late.
func TestHookFlood(t *testing.T) { synctest.Test(t, hookFlood) }

func hookFlood(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	treetest.Must(t, err)
	defer l.Close()
	list := func(n int, more string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "/%x,", i)
		}
		return "relabel=" + b.String() + more
	}
	for _, c := range []struct {
		asked string
		lines int // on stderr and in the journal
		last  string
	}{
		{list(53000, "/x"), 2, ": io.fastlabel.relabel lists more than 256 destinations\n"},
		{list(255, "/"+strings.Repeat("long", 50000)), 2 * maxLines, " container c1: 207 more lines are left out\n"},
		{"relabel=/" + strings.Repeat("\x1b\xff", 40000), 2, "..."},
		{"relabel=/many", 2 * (report.MaxListed + 2), "1,234 failed, 0.010 s; label system_u:object_r:container_file_t:s0:c1,c2\n"},
	} {
		x := newContainer(t, c.asked)
		x.bind("/many", "many")
		var stderr strings.Builder
		h := &hook{app: fake(), settings: &settings{verbose: 1}, lines: &hookLines{stderr: &stderr, journal: &journal{path: path}, verbose: true}}
		all := make(chan []string)
		go func() { // a queue has room for ten
			var lines []string
			for buf := make([]byte, 1<<20); ; {
				n, err := l.Read(buf)
				if err != nil || string(buf[:n]) == "over" {
					all <- lines
					return
				}
				lines = append(lines, string(buf[:n]))
			}
		}()
		code := h.run(t.Context(), strings.NewReader(x.write()))
		over, err := net.Dial("unixgram", path)
		treetest.Must(t, err)
		_, err = over.Write([]byte("over"))
		treetest.Must(t, err)
		over.Close()
		lines := slices.AppendSeq(<-all, strings.Lines(stderr.String()))
		for _, line := range lines {
			if len(line) > 8<<10 {
				t.Errorf("a line of %d bytes", len(line))
			}
		}
		if code != exit.Failed || len(lines) != c.lines || !strings.HasSuffix(strings.TrimSuffix(" "+lines[len(lines)-1], "\n"), strings.TrimSuffix(c.last, "\n")) {
			t.Errorf("%.40s: exit %d, %d lines, the last is %.200s", c.asked, code, len(lines), lines[len(lines)-1])
		}
	}

	// After the end no mount is gone through.
	ended, cancel := context.WithCancelCause(t.Context())
	cancel(exit.Deadline{After: time.Second})
	h := &hook{app: fake(), settings: &settings{}, lines: &hookLines{stderr: io.Discard, journal: &journal{path: path + "not"}}}
	if volumes, _ := h.choose(ended, []oci.Mount{mount("/m", "bind", "/")}, &oci.Request{Destinations: []string{"/m"}}); volumes != nil {
		t.Errorf("after the end: %v", volumes)
	}
}

// setLabel gives path a label, or skips the test where that cannot be.
func setLabel(t *testing.T, path, label string) {
	t.Helper()
	err := syscall.Setxattr(path, "security.selinux", []byte(label), 0)
	if (errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENOTSUP)) && !strings.Contains(os.Getenv("FASTLABEL_PROMISE"), "root") {
		t.Skip("needs root and a filesystem that has labels")
	}
	treetest.Must(t, err)
}

// plant makes directories of files beneath dir, all of which have etcLabel.
func plant(t *testing.T, dir string, dirs, files int) {
	t.Helper()
	text := "default label=" + etcLabel + "\ndir .\n"
	for d := range dirs {
		text += fmt.Sprintf("dir d%d\nfile d%[1]d/f%%d x%d\n", d, files)
	}
	treetest.Must(t, os.MkdirAll(dir, 0o700))
	setLabel(t, dir, etcLabel) // or skip
	treetest.Build(t, dir, treetest.Text(t, text))
}

// only expects label on all n entries of dir.
func only(t *testing.T, dir, label string, n int) {
	t.Helper()
	all := treetest.Read(t, dir)
	for path, has := range all {
		if has != label {
			t.Errorf("%s in %s has %s, not %s", path, filepath.Base(dir), has, label)
		}
	}
	if len(all) != n {
		t.Errorf("%s: %d entries, not %d", filepath.Base(dir), len(all), n)
	}
}

// ownRuntime is where who is not root locks.
func ownRuntime(t *testing.T) {
	t.Helper()
	runtime := t.TempDir()
	treetest.Must(t, os.Chmod(runtime, 0o700))
	t.Setenv("XDG_RUNTIME_DIR", runtime)
}

// The hook with the library. With "true" a directory of the system among the mounts is left alone, and said to be, also
// where only the engine knows it. A list that names one refuses the container.
func TestHookSystem(t *testing.T) {
	ownRuntime(t)
	x := newContainer(t, "relabel=true")
	plant(t, x.dir+"/state", 1, 1)
	plant(t, x.dir+"/home", 1, 1)
	t.Setenv("HOME", x.dir+"/home")
	x.bind("/log", "/var/log")
	x.bind("/home", "home")
	x.bind("/state", "state")
	x.expect(
		real(), "", exit.Done, "/log: skipped: /var/log is a system directory or device, or holds one\n",
		`/home: skipped: "DIR/home": relabel: relabelling is not allowed: DIR/home is a system directory or a home, or holds one`,
	)
	only(t, x.dir+"/state", mountLabel, 3)
	only(t, x.dir+"/home", etcLabel, 3)
	for _, place := range []string{"/log", "/home"} {
		x.state["annotations"] = map[string]string{oci.AskRelabel: place}
		x.expect(real(), "", exit.Failed, place+`: "`, "relabelling is not allowed")
	}
	only(t, x.dir+"/home", etcLabel, 3)
}

// A volume on which nothing can be written refuses no container.
func TestHookReadOnly(t *testing.T) {
	x := newContainer(t, "relabel=/v")
	x.bind("/v", "v")
	a := real()
	a.readOnly = func(string) bool { return true }
	plant(t, x.dir+"/v", 1, 1)
	x.expect(a, "", exit.Done, "relabel: read-only file system: not everything has the label, and nothing was written\n", "/v: skipped: no label can be set there\n")
}
