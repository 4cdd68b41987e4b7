// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"encoding/base64"
	"errors"
	"strconv"
	"syscall"
	"unicode/utf8"

	"go.uber.org/zap/zapcore"
	"golang.org/x/sys/unix"

	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/stream"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/words"
	"github.com/fastlabel/fastlabel/relabel"
)

// JSON prints each event as a compact object on a line of stdout.
// docs/output.schema.json describes each key; test/system/deploy holds the lines against it.
//
// A name on Linux is any bytes, a JSON string is not. path holds the name with
// U+FFFD where it is not UTF-8; then, and only then, path_base64 holds its
// exact bytes. Other names, and labels of files, have their twins likewise. Keys
// may be added; those that are here stay.
type JSON struct {
	Out   *stream.Sink
	Quiet bool // failures alone
	Dry   bool
}

func (j *JSON) Put(e Event) {
	if j.Quiet && e.Kind != Failure {
		return
	}
	j.Out.Line(Object(e, j.Dry), e.Kind != Change)
}

// encoder writes objects with nothing but the fields of an event. It is zap's, without
// package zap: that serves levels over HTTP, and net/http with what it needs is a quarter
// of a program and half a millisecond of each start.
var encoder = zapcore.NewJSONEncoder(zapcore.EncoderConfig{SkipLineEnding: true})

// Object returns the event in JSON, with names and values of more in front.
func Object(e Event, dry bool, more ...string) []byte {
	fields := zapcore.ObjectMarshalerFunc(func(to zapcore.ObjectEncoder) error {
		o := object{to}
		o.text("message_type", string(e.Kind))
		for i := 0; i < len(more); i += 2 {
			o.name(more[i], more[i+1])
		}
		o.event(e, dry)
		return nil
	})
	b, err := encoder.EncodeEntry(zapcore.Entry{}, []zapcore.Field{{Type: zapcore.InlineMarshalerType, Interface: fields}})
	if err != nil { // of no kind of field that is used here
		panic("encoding an event: " + err.Error())
	}
	defer b.Free()
	return words.ASCII(b.Bytes())
}

// object is an object that is being written.
type object struct{ zapcore.ObjectEncoder }

// text adds a value that is not empty.
func (o object) text(key, value string) {
	if value != "" {
		o.AddString(key, value)
	}
}

// name adds a name or label, and its exact bytes if a JSON string cannot hold them.
func (o object) name(key, value string) {
	if value != "" {
		o.whole(key, value)
	}
}

func (o object) whole(key, value string) {
	o.AddString(key, value)
	if !utf8.ValidString(value) {
		o.AddString(key+"_base64", base64.StdEncoding.EncodeToString([]byte(value)))
	}
}

// counts adds what status and summary have alike. Where nothing is written, written is
// the number of labels that differ.
func (o object) counts(dry bool, n relabel.Counts) {
	name := "written"
	if dry {
		name = "differs"
	}
	o.AddInt64("seen", n.Seen)
	o.AddInt64(name, n.Written)
	o.AddInt64("right", n.Right)
	o.AddInt64("vanished", n.Vanished)
	o.AddInt64("skipped", n.Skipped)
	o.AddInt64("failed", n.Failed)
}

func (o object) event(e Event, dry bool) {
	if o.name("root", e.Root); e.Far == nil && e.Kind != Failure {
		o.name("path", e.Path)
	}
	switch e.Kind {
	case Failure:
		f := Fault{path: e.Root, text: e.Text}
		if e.Err != nil {
			f = FaultOf(e.Root, e.Err)
		}
		o.whole("path", f.path)
		o.text("op", f.op)
		o.text("errno", errnoName(e.Err))
		o.text("text", f.text)
	case Change:
		o.name("from", e.From)
		o.AddString("to", e.To)
		if dry {
			o.AddBool("dry_run", true)
		}
	case Skip:
		o.text("reason", e.Text)
	case Note:
		o.text("text", e.Text)
	case Status:
		o.text("state", e.State)
		o.text("call", e.Call)
		o.probe(e.Probe)
		o.far(e.Far, dry)
	case Summary:
		o.result(e.Result)
	}
}

func (o object) probe(p *Probe) {
	if p != nil {
		o.text("label", p.Label)
		o.text("depth", p.Depth)
		o.AddBool("labelled", p.Labelled)
		o.AddBool("interrupted", p.Interrupted)
		o.name("has", p.Has)
	}
}

func (o object) far(f *Far, dry bool) {
	if f == nil {
		return
	}
	o.counts(dry, f.Counts)
	o.AddFloat64("seconds", f.Elapsed.Seconds())
	o.AddFloat64("rate", f.Rate)
	o.AddInt64("directories", f.Found)
	o.AddInt64("directories_left", f.Found-f.Entered)
	if f.Total > 0 {
		o.AddInt64("total", f.Total)
		o.AddInt64("percent", f.percent())
	}
	if f.Left > 0 {
		o.AddFloat64("seconds_left", f.Left.Seconds())
	}
	o.text("call", f.Call)
	o.name("path", f.Path)
}

func (o object) result(r *Result) {
	o.AddString("label", r.Label)
	o.counts(r.DryRun, r.Counts)
	o.AddBool("trusted", r.Trusted)
	o.AddBool("complete", r.Complete)
	o.AddFloat64("seconds", r.Elapsed.Seconds())
	o.AddInt64("exit_code", int64(r.Code))
	o.text("reason", r.Reason)
	o.text("way", r.Way)
	if r.DryRun {
		o.AddBool("dry_run", true)
	}
	o.text("interrupted", r.Interrupted)
	if len(r.Notes) > 0 {
		_ = o.AddReflected("notes", r.Notes)
	}
	if len(r.Labels) > 0 {
		_ = o.AddReflected("labels", r.Labels)
	}
}

// errnoName returns the name of the error number in err; "" if it has none.
func errnoName(err error) string {
	var e syscall.Errno
	switch errors.As(err, &e); e {
	case 0:
		return ""
	case syscall.EOPNOTSUPP: // of two names the kernel's own
		return "EOPNOTSUPP"
	case syscall.EUCLEAN:
		return "EUCLEAN"
	}
	return cmp.Or(unix.ErrnoName(e), "errno "+strconv.Itoa(int(e)))
}
