// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"io"
	"io/fs"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/exit"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/report"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/stream"
	"github.com/fastlabel/fastlabel/relabel"
	"github.com/fastlabel/fastlabel/test/treetest"
)

func TestLabelOutput(t *testing.T) {
	treetest.Need(t, "root")              // others are told that they are not
	synctest.Test(t, func(t *testing.T) { // deadlines are reached in a time of its own
		golden(t, "label", transcript(fake(), calls(
			"/var/lib/pv", "-q /var/lib/pv", "--skip top /trusted", "/one", "/every", "-q /every",
			"/changes", "-v /changes", "-n /changes", "-nv /changes", "-n /var/lib/pv",
			"/failed", "-q /failed", "/many", "/unfinished", "/missing", "/refused", "/unsupported",
			"/refused /missing /one", "--timeout 300ms /deadline /next", "--timeout 300ms /cause",
			"/told", "--timeout 300ms /hung", "--timeout 300ms /stalls /one", "-q --timeout 300ms /stalls", "--timeout 300ms /cut",
			"--timeout 300ms /crowded",
		)))
		if got := transcript(fake(), calls("-v /many")); strings.Count(got, "read-only file system") != 1234 {
			t.Error("-v does not list every failure")
		}
	})
}

func TestVerifyOutput(t *testing.T) {
	golden(t, "verify", transcript(fake(), calls(
		"verify /var/lib/pv", "verify /differs", "verify -v /differs", "verify --json /differs",
		"verify -v /crowd", "verify -q /crowd", "verify --json -q /failed",
	)))
}

func TestProbeOutput(t *testing.T) {
	all := calls(
		"probe /right", "probe /wrong", "probe /sealed", "probe /missing", "probe /unsupported", "probe -q /wrong",
		"probe /right /wrong", "probe --depth top /top", "--depth top probe /top", "probe /top",
		"probe --json /right /sealed /missing",
	)
	all = append(all, call{args: []string{"probe", "/ri\xffght"}}, call{args: []string{"probe", "--json", "/ri\xffght"}})
	golden(t, "probe", transcript(fake(), all))
}

func TestJSONOutput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		golden(t, "json", transcript(fake(), calls(
			"--json /var/lib/pv", "--json --skip root /trusted", "--json /every", "--json /changes", "--json -v /changes",
			"--json -n /changes", "--json /failed", "--json /missing", "--json /unsupported", "--json /refused",
			"--json --timeout 300ms /deadline /next", "--json --timeout 300ms /stalls /one", "--json --bad", "--json -q /one",
		)))
	})
}

// Each line is an object, its names come back exactly, and nothing in it would
// move a terminal's cursor.
func TestJSONExact(t *testing.T) {
	names := []string{"plain", "\xff\xfe", "a\nb", "\u009b31m", "\u202eback", "\U000e0001tag", "<&>", "\u2028", "\\\"", "é", "\x7f", "./a//."}
	for _, name := range names {
		var b bytes.Buffer
		out := stream.NewSink(&b, nil)
		j := report.Reporter{Sink: &report.JSON{Out: out}}
		s := report.Source{Reporter: j, Root: "/r/" + name}
		s.Changed("/r/"+name, name, "to")
		s.Skipped("/r/"+name, "why")
		s.Failed(&fs.PathError{Op: "openat", Path: "/r/" + name, Err: syscall.EIO})
		treetest.Must(t, out.Flush())
		for _, r := range b.String() {
			if r != '\n' && !unicode.IsPrint(r) {
				t.Errorf("%q: raw %q", name, r)
			}
		}
		lines := bufio.NewScanner(&b)
		for lines.Scan() {
			var got map[string]any
			treetest.Must(t, json.Unmarshal(lines.Bytes(), &got))
			for _, key := range []string{"path", "root"} {
				text := got[key].(string)
				if raw, ok := got[key+"_base64"].(string); ok != !utf8.ValidString(name) {
					t.Errorf("%q: %s_base64 is there: %v", name, key, ok)
				} else if ok {
					exact, err := base64.StdEncoding.DecodeString(raw)
					treetest.Must(t, err)
					text = string(exact)
				}
				if text != "/r/"+name {
					t.Errorf("%q came back as %q", name, text)
				}
			}
		}
	}
}

// The golden file holds each kind of line with every key that
// it can have, and the schema in docs has them all: test/system/deploy holds them together.
func TestJSONWhole(t *testing.T) {
	var b bytes.Buffer
	out := stream.NewSink(&b, nil)
	sink := &report.JSON{Out: out, Dry: true}
	j := report.Reporter{Sink: sink}
	const root, path = "/v\xff", "/v\xff/a"
	label := defaultLabel + ":c1"
	j.Failure(root, &fs.PathError{Op: "setxattrat", Path: path, Err: syscall.EPERM})
	s := report.Source{Reporter: j, Root: root}
	s.Changed(path, "x\xff", label)
	s.Skipped(path, "excluded")
	s.Waits()
	j.Stall(root, relabel.HungCall{Call: "openat", Path: path})
	j.Note(root, "a sentence")
	j.Put(report.Event{Kind: report.Status, Root: root, Probe: &report.Probe{Root: root, Label: label, Depth: "top", Interrupted: true, Has: "x\xff"}})
	j.Put(report.Event{Kind: report.Status, Root: root, Probe: &report.Probe{Root: root, Label: label, Depth: "top", Labelled: true}})
	f := report.Far{
		State:   relabel.State{Counts: relabel.Counts{Seen: 15, Written: 5, Right: 4, Vanished: 3, Skipped: 2, Failed: 1}, Found: 7, Entered: 6, Path: path},
		Elapsed: time.Second, Rate: 2.5, Total: 100, Left: 34 * time.Second,
	}
	status := func() {
		far := f
		j.Put(report.Event{Kind: report.Status, State: "running", Root: root, Far: &far})
	}
	status()
	f.Path, f.Call, f.Left = "", "syncfs", 0
	status()
	r := report.Result{Code: exit.TimedOut, Reason: "deadline of 1s reached", DryRun: true}
	r.Report = relabel.Report{
		Root: root, Label: label, Counts: relabel.Counts{Seen: 15, Written: 5, Right: 4, Vanished: 3, Skipped: 2, Failed: 1}, Elapsed: time.Second,
		Way: "clone/setxattrat", Interrupted: defaultLabel, Notes: []string{"a sentence"},
	}
	r.Labels = []report.Labels{{Label: "x\xff", Exact: "eP8=", Count: 4}, {Count: 1, Other: true}}
	j.Result(r)
	r.Labels = nil
	r.DryRun, sink.Dry = false, false
	status()
	j.Result(r)
	treetest.Must(t, out.Flush())
	golden(t, "jsonwhole", prefixed("1> ", b.String()))
}

// verify -v lists some of what differs, and what labels that has; -vv and --json list all.
func TestVerifyLimit(t *testing.T) {
	for args, lines := range map[string]int{"verify -v /crowd": report.MaxListed, "verify -vv /crowd": 45, "-n -v /crowd": 45} {
		if got := transcript(fake(), calls(args)); strings.Count(got, "would relabel") != lines || strings.Contains(got, "25 more differ; -vv lists all") != (lines == 20) {
			t.Errorf("%s:\n%s", args, got)
		}
	}
	if got := transcript(fake(), calls("verify --json -v /crowd")); strings.Count(got, `"change"`) != 45 || !strings.Contains(got, `"labels":[{"count":20},{"has":"system_u:object_r:etc_t:s0","count":20},{"has":"u:r:\u001b:s0","count":5}]`) {
		t.Error(got)
	}
	s := report.Source{Verify: true}
	s.Sink = &report.JSON{Out: stream.NewSink(io.Discard, nil)}
	for i := range 30 {
		s.Changed("/p", strings.Repeat("x", i/2), "to")
	}
	if all := s.Labels(); len(all) != 11 || all[0].Count != 2 || all[10] != (report.Labels{Other: true, Count: 10}) {
		t.Error(all)
	}
}
