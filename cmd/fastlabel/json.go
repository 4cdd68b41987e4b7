// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/stream"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/words"
	"github.com/fastlabel/fastlabel/relabel"
)

// jsonLines prints one compact object a line to stdout. Each has a
// message_type:
//
//	summary  what became of a PATH: one for each, the last about it
//	error    a failure: path, op (the system call), errno (its name), text
//	status   what goes on, by its state: probe's answer has none; waiting for
//	         another relabel; stalled, for a call that does not return; running,
//	         with --progress each second and for each SIGUSR1
//	change   with -v, an entry that was written (dry_run: would be)
//	skip     an entry, or a PATH, that was left alone, and why
//	note     a sentence for people
//	explanation
//	         the answer of explain
//
// docs/output.schema.json describes each key; test/deploy holds the lines against it.
//
// A name on Linux is any bytes, a JSON string is not. path holds the name with
// U+FFFD where it is not UTF-8; then, and only then, path_base64 holds its
// exact bytes. Other names, and labels of files, have their twins likewise. Keys
// may be added; those that are here stay.
type jsonLines struct {
	out     *stream.Sink
	verbose bool
	dry     bool
}

type jsonHead struct {
	Type       string `json:"message_type"`
	Root       string `json:"root,omitempty"`
	RootBase64 string `json:"root_base64,omitempty"`
}

type jsonPath struct {
	Path       string `json:"path"`
	PathBase64 string `json:"path_base64,omitempty"`
}

func head(kind, root string) jsonHead { return jsonHead{kind, root, inBase64(root)} }

// inBase64 is "" for what a JSON string can hold.
func inBase64(s string) string {
	if utf8.ValidString(s) {
		return ""
	}
	return base64.StdEncoding.EncodeToString([]byte(s))
}

func (j *jsonLines) line(v any, now bool) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil { // strings and numbers: cannot be
		panic(fmt.Sprint("encoding a line: ", err))
	}
	j.out.Line(words.ASCII(bytes.TrimSuffix(b.Bytes(), []byte{'\n'})), now)
}

func (j *jsonLines) failure(root string, err error) {
	f := explain(root, err)
	j.line(struct {
		jsonHead
		jsonPath
		Op    string `json:"op,omitempty"`
		Errno string `json:"errno,omitempty"`
		Text  string `json:"text"`
	}{head("error", root), jsonPath{f.path, inBase64(f.path)}, f.op, errnoName(err), f.text}, true)
}

func (j *jsonLines) change(root, path, from, to string) {
	if !j.verbose {
		return
	}
	j.line(struct {
		jsonHead
		jsonPath
		From       string `json:"from,omitempty"`
		FromBase64 string `json:"from_base64,omitempty"`
		To         string `json:"to"`
		ToBase64   string `json:"to_base64,omitempty"`
		DryRun     bool   `json:"dry_run,omitempty"`
	}{head("change", root), jsonPath{path, inBase64(path)}, from, inBase64(from), to, inBase64(to), j.dry}, false)
}

func (j *jsonLines) skip(root, path, reason string) {
	j.line(struct {
		jsonHead
		jsonPath
		Reason string `json:"reason"`
	}{head("skip", root), jsonPath{path, inBase64(path)}, reason}, true)
}

func (j *jsonLines) wait(root, holder string) {
	j.line(struct {
		jsonHead
		State  string `json:"state"`
		Holder string `json:"holder"`
	}{head("status", root), "waiting", holder}, true)
}

func (j *jsonLines) stall(root string, c relabel.HungCall) {
	j.line(struct {
		jsonHead
		jsonPath
		State string `json:"state"`
		Call  string `json:"call,omitempty"`
	}{head("status", root), jsonPath{c.Path, inBase64(c.Path)}, "stalled", c.Call}, true)
}

func (j *jsonLines) note(root, text string) {
	j.line(struct {
		jsonHead
		Text string `json:"text"`
	}{head("note", root), text}, true)
}

func (j *jsonLines) probed(p probeResult) {
	j.line(struct {
		jsonHead
		Label       string `json:"label"`
		Depth       string `json:"depth"`
		Labelled    bool   `json:"labelled"`
		Interrupted bool   `json:"interrupted"`

		Has       string    `json:"has,omitempty"`
		HasBase64 string    `json:"has_base64,omitempty"`
		Run       time.Time `json:"run_ended,omitzero"`
	}{head("status", p.root), p.label, p.depth, p.labelled, p.interrupted, p.has, inBase64(p.has), p.run.UTC()}, true)
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
func (j *jsonLines) counts(seen, written, right, vanished, skipped, failed int64) jsonCounts {
	c := jsonCounts{Seen: seen, Written: &written, Right: right, Vanished: vanished, Skipped: skipped, Failed: failed}
	if j.dry {
		c.Written, c.Differs = nil, &written
	}
	return c
}

func (j *jsonLines) status(f far) {
	line := struct {
		jsonHead
		State string `json:"state"`
		jsonCounts
		Seconds     float64 `json:"seconds"`
		Rate        float64 `json:"rate"`
		Directories int64   `json:"directories"`
		Left        int64   `json:"directories_left"`
		Total       int64   `json:"total,omitempty"`
		From        bound   `json:"total_from,omitempty"`
		Percent     *int64  `json:"percent,omitempty"`
		SecondsLeft float64 `json:"seconds_left,omitempty"`
		Call        string  `json:"call,omitempty"`
		Path        string  `json:"path,omitempty"`
		PathBase64  string  `json:"path_base64,omitempty"`
	}{
		jsonHead: head("status", f.root), State: "running",
		jsonCounts: j.counts(f.Seen, f.Written, f.Right, f.Vanished, f.Skipped, f.Failed),
		Seconds:    f.elapsed.Seconds(), Rate: f.rate, Directories: f.Found, Left: f.Found - f.Entered,
		Total: f.total, From: f.from, SecondsLeft: f.left.Seconds(),
		Call: f.Call, Path: f.Path, PathBase64: inBase64(f.Path),
	}
	if f.total > 0 {
		percent := f.percent()
		line.Percent = &percent
	}
	j.line(line, true)
}

func (j *jsonLines) result(r result) {
	j.line(struct {
		jsonHead
		Label string `json:"label"`
		jsonCounts
		Trusted     bool      `json:"trusted"`
		Complete    bool      `json:"complete"`
		Seconds     float64   `json:"seconds"`
		ExitCode    int       `json:"exit_code"`
		Reason      string    `json:"reason,omitempty"`
		Way         string    `json:"way,omitempty"`
		DryRun      bool      `json:"dry_run,omitempty"`
		Interrupted string    `json:"interrupted,omitempty"`
		Unchanged   int64     `json:"unchanged,omitempty"`
		Since       time.Time `json:"since,omitzero"`
		Notes       []string  `json:"notes,omitempty"`
		EntriesLeft int64     `json:"entries_left,omitempty"`
		From        bound     `json:"total_from,omitempty"`
		DirsLeft    int64     `json:"directories_left,omitempty"`
	}{
		head("summary", r.Root), r.Label,
		j.counts(r.Seen, r.Written, r.Right, r.Vanished, r.Skipped, r.Failed),
		r.Trusted, r.Complete, r.Elapsed.Seconds(), r.code, r.reason, r.Way, r.dryRun, r.Interrupted, r.Unchanged, r.Since.UTC(), r.Notes,
		r.entriesLeft, r.from, r.dirsLeft,
	}, true)
}
