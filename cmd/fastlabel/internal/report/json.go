// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/stream"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/words"
	"github.com/fastlabel/fastlabel/relabel"
)

// JSON prints one compact object a line to stdout. Each has a
// message_type:
//
//	summary  what became of a PATH: one for each, the last about it
//	error    a failure: path, op (the system call), errno (its name), text
//	status   what happens now, by its state: probe's answer has none; waiting for
//	         another relabel; stalled, for a call that does not return; running,
//	         with --progress each second and for each SIGUSR1
//	change   with -v, an entry that was written (dry_run: would be)
//	skip     an entry, or a PATH, that was left alone, and why
//	note     a sentence for people
//
// docs/output.schema.json describes each key; test/deploy holds the lines against it.
//
// A name on Linux is any bytes, a JSON string is not. path holds the name with
// U+FFFD where it is not UTF-8; then, and only then, path_base64 holds its
// exact bytes. Other names, and labels of files, have their twins likewise. Keys
// may be added; those that are here stay.
type JSON struct {
	Out     *stream.Sink
	Verbose bool
	Dry     bool
}

// Head begins each line.
type Head struct {
	Type       string `json:"message_type"`
	Root       string `json:"root,omitempty"`
	RootBase64 string `json:"root_base64,omitempty"`
}

// JSONPath is a path in a line.
type JSONPath struct {
	Path       string `json:"path"`
	PathBase64 string `json:"path_base64,omitempty"`
}

// PathOf is path in a line.
func PathOf(path string) JSONPath { return JSONPath{path, Base64(path)} }

// NewHead begins a line of that kind about root.
func NewHead(kind, root string) Head { return Head{kind, root, Base64(root)} }

// Base64 is "" for what a JSON string can hold.
func Base64(s string) string {
	if utf8.ValidString(s) {
		return ""
	}
	return base64.StdEncoding.EncodeToString([]byte(s))
}

func (j *JSON) line(v any, now bool) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil { // strings and numbers: cannot be
		panic(fmt.Sprint("encoding a line: ", err))
	}
	j.Out.Line(words.ASCII(bytes.TrimSuffix(b.Bytes(), []byte{'\n'})), now)
}

func (j *JSON) Failure(root string, err error) {
	f := FaultOf(root, err)
	j.line(struct {
		Head
		JSONPath
		Op    string `json:"op,omitempty"`
		Errno string `json:"errno,omitempty"`
		Text  string `json:"text"`
	}{NewHead("error", root), PathOf(f.path), f.op, errnoName(err), f.text}, true)
}

func (j *JSON) Change(root, path, from, to string) {
	if !j.Verbose {
		return
	}
	j.line(struct {
		Head
		JSONPath
		From       string `json:"from,omitempty"`
		FromBase64 string `json:"from_base64,omitempty"`
		To         string `json:"to"`
		DryRun     bool   `json:"dry_run,omitempty"`
	}{NewHead("change", root), PathOf(path), from, Base64(from), to, j.Dry}, false)
}

func (j *JSON) Skip(root, path, reason string) {
	j.line(struct {
		Head
		JSONPath
		Reason string `json:"reason"`
	}{NewHead("skip", root), PathOf(path), reason}, true)
}

func (j *JSON) Wait(root, holder string) {
	j.line(struct {
		Head
		State  string `json:"state"`
		Holder string `json:"holder"`
	}{NewHead("status", root), "waiting", holder}, true)
}

func (j *JSON) Stall(root string, c relabel.HungCall) {
	j.line(struct {
		Head
		JSONPath
		State string `json:"state"`
		Call  string `json:"call,omitempty"`
	}{NewHead("status", root), PathOf(c.Path), "stalled", c.Call}, true)
}

func (j *JSON) Note(root, text string) {
	j.line(struct {
		Head
		Text string `json:"text"`
	}{NewHead("note", root), text}, true)
}

func (j *JSON) Probed(p Probe) {
	j.line(struct {
		Head
		Label       string `json:"label"`
		Depth       string `json:"depth"`
		Labelled    bool   `json:"labelled"`
		Interrupted bool   `json:"interrupted"`
		Has         string `json:"has,omitempty"`
		HasBase64   string `json:"has_base64,omitempty"`
	}{NewHead("status", p.Root), p.Label, p.Depth, p.Labelled, p.Interrupted, p.Has, Base64(p.Has)}, true)
}

// jsonCounts are in status and in summary alike.
type jsonCounts struct {
	Seen     int64  `json:"seen"`
	Written  *int64 `json:"written,omitempty"`
	Differs  *int64 `json:"differs,omitempty"` // in its place where nothing is written
	Right    int64  `json:"right"`
	Vanished int64  `json:"vanished"`
	Skipped  int64  `json:"skipped"`
	Failed   int64  `json:"failed"`
}

// counts are the counts of a run.
func (j *JSON) counts(seen, written, right, vanished, skipped, failed int64) jsonCounts {
	c := jsonCounts{Seen: seen, Written: &written, Right: right, Vanished: vanished, Skipped: skipped, Failed: failed}
	if j.Dry {
		c.Written, c.Differs = nil, &written
	}
	return c
}

func (j *JSON) Status(f Far) {
	line := struct {
		Head
		State string `json:"state"`
		jsonCounts
		Seconds     float64 `json:"seconds"`
		Rate        float64 `json:"rate"`
		Directories int64   `json:"directories"`
		Left        int64   `json:"directories_left"`
		Total       int64   `json:"total,omitempty"`
		Percent     *int64  `json:"percent,omitempty"`
		SecondsLeft float64 `json:"seconds_left,omitempty"`
		Call        string  `json:"call,omitempty"`
		Path        string  `json:"path,omitempty"`
		PathBase64  string  `json:"path_base64,omitempty"`
	}{
		Head: NewHead("status", f.Root), State: "running",
		jsonCounts: j.counts(f.Seen, f.Written, f.Right, f.Vanished, f.Skipped, f.Failed),
		Seconds:    f.Elapsed.Seconds(), Rate: f.Rate, Directories: f.Found, Left: f.Found - f.Entered,
		Total: f.Total, SecondsLeft: f.Left.Seconds(),
		Call: f.Call, Path: f.Path, PathBase64: Base64(f.Path),
	}
	if f.Total > 0 {
		percent := f.percent()
		line.Percent = &percent
	}
	j.line(line, true)
}

func (j *JSON) Result(r Result) {
	j.line(struct {
		Head
		Label string `json:"label"`
		jsonCounts
		Trusted     bool     `json:"trusted"`
		Complete    bool     `json:"complete"`
		Seconds     float64  `json:"seconds"`
		ExitCode    int      `json:"exit_code"`
		Reason      string   `json:"reason,omitempty"`
		Way         string   `json:"way,omitempty"`
		DryRun      bool     `json:"dry_run,omitempty"`
		Interrupted string   `json:"interrupted,omitempty"`
		Notes       []string `json:"notes,omitempty"`
		EntriesLeft int64    `json:"entries_left,omitempty"`
		DirsLeft    int64    `json:"directories_left,omitempty"`
	}{
		NewHead("summary", r.Root), r.Label,
		j.counts(r.Seen, r.Written, r.Right, r.Vanished, r.Skipped, r.Failed),
		r.Trusted, r.Complete, r.Elapsed.Seconds(), r.Code, r.Reason, r.Way, r.DryRun, r.Interrupted, r.Notes,
		r.EntriesLeft, r.DirsLeft,
	}, true)
}
