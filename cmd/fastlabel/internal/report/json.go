// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"encoding/base64"
	"errors"
	"math"
	"strconv"
	"syscall"
	"unicode/utf8"

	"go.uber.org/zap/zapcore"
	"golang.org/x/sys/unix"

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
// docs/output.schema.json describes each key; test/system/deploy holds the lines against it.
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

// encoder writes objects with nothing but the fields of a line. It is zap's, without
// package zap: that serves levels over HTTP, and net/http with what it needs is a quarter
// of a program and half a millisecond of each start.
var encoder = zapcore.NewJSONEncoder(zapcore.EncoderConfig{SkipLineEnding: true})

// line is an object to be printed.
type line []zapcore.Field

// lineOf begins a line of that kind about root.
func lineOf(kind, root string) *line {
	l := new(line).text("message_type", kind)
	if root != "" {
		l.name("root", root)
	}
	return l
}

func (l *line) add(f zapcore.Field) *line { *l = append(*l, f); return l }

func (l *line) text(key, value string) *line {
	return l.add(zapcore.Field{Key: key, Type: zapcore.StringType, String: value})
}

// name adds a name or label, and its exact bytes if a JSON string cannot hold them.
func (l *line) name(key, value string) *line {
	l.text(key, value)
	if !utf8.ValidString(value) {
		l.text(key+"_base64", base64.StdEncoding.EncodeToString([]byte(value)))
	}
	return l
}

func (l *line) number(key string, value int64) *line {
	return l.add(zapcore.Field{Key: key, Type: zapcore.Int64Type, Integer: value})
}

func (l *line) float(key string, value float64) *line {
	return l.add(zapcore.Field{Key: key, Type: zapcore.Float64Type, Integer: int64(math.Float64bits(value))})
}

func (l *line) truth(key string, value bool) *line {
	f := zapcore.Field{Key: key, Type: zapcore.BoolType}
	if value {
		f.Integer = 1
	}
	return l.add(f)
}

// The same, but nothing is added for "" and 0.

func (l *line) textIf(key, value string) *line {
	if value == "" {
		return l
	}
	return l.text(key, value)
}

func (l *line) nameIf(key, value string) *line {
	if value == "" {
		return l
	}
	return l.name(key, value)
}

func (l *line) numberIf(key string, value int64) *line {
	if value == 0 {
		return l
	}
	return l.number(key, value)
}

// texts are an array.
type texts []string

func (t texts) MarshalLogArray(to zapcore.ArrayEncoder) error {
	for _, text := range t {
		to.AppendString(text)
	}
	return nil
}

// print prints the line, at once or when there is more.
func (j *JSON) print(l *line, now bool) {
	b, err := encoder.EncodeEntry(zapcore.Entry{}, *l)
	if err != nil { // of no kind of field that is used here
		panic("encoding a line: " + err.Error())
	}
	j.Out.Line(words.ASCII(b.Bytes()), now)
	b.Free()
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

func (j *JSON) Failure(root string, err error) {
	f := FaultOf(root, err)
	j.print(lineOf("error", root).name("path", f.path).textIf("op", f.op).textIf("errno", errnoName(err)).text("text", f.text), true)
}

func (j *JSON) Change(root, path, from, to string) {
	if !j.Verbose {
		return
	}
	l := lineOf("change", root).name("path", path).nameIf("from", from).text("to", to)
	if j.Dry {
		l.truth("dry_run", true)
	}
	j.print(l, false)
}

func (j *JSON) Skip(root, path, reason string) {
	j.print(lineOf("skip", root).name("path", path).text("reason", reason), true)
}

func (j *JSON) Wait(root, holder string) {
	j.print(lineOf("status", root).text("state", "waiting").text("holder", holder), true)
}

func (j *JSON) Stall(root string, c relabel.HungCall) {
	j.print(lineOf("status", root).name("path", c.Path).text("state", "stalled").textIf("call", c.Call), true)
}

func (j *JSON) Note(root, text string) {
	j.print(lineOf("note", root).text("text", text), true)
}

func (j *JSON) Probed(p Probe) {
	j.print(lineOf("status", p.Root).text("label", p.Label).text("depth", p.Depth).
		truth("labelled", p.Labelled).truth("interrupted", p.Interrupted).nameIf("has", p.Has), true)
}

// counts adds what status and summary have alike. Where nothing is written, written is
// the number of labels that differ.
func (j *JSON) counts(l *line, seen, written, right, vanished, skipped, failed int64) {
	name := "written"
	if j.Dry {
		name = "differs"
	}
	l.number("seen", seen).number(name, written).number("right", right).
		number("vanished", vanished).number("skipped", skipped).number("failed", failed)
}

func (j *JSON) Status(f Far) {
	l := lineOf("status", f.Root).text("state", "running")
	j.counts(l, f.Seen, f.Written, f.Right, f.Vanished, f.Skipped, f.Failed)
	l.float("seconds", f.Elapsed.Seconds()).float("rate", f.Rate).
		number("directories", f.Found).number("directories_left", f.Found-f.Entered).numberIf("total", f.Total)
	if f.Total > 0 {
		l.number("percent", f.percent())
	}
	if f.Left > 0 {
		l.float("seconds_left", f.Left.Seconds())
	}
	j.print(l.textIf("call", f.Call).nameIf("path", f.Path), true)
}

func (j *JSON) Result(r Result) {
	l := lineOf("summary", r.Root).text("label", r.Label)
	j.counts(l, r.Seen, r.Written, r.Right, r.Vanished, r.Skipped, r.Failed)
	l.truth("trusted", r.Trusted).truth("complete", r.Complete).float("seconds", r.Elapsed.Seconds()).
		number("exit_code", int64(r.Code)).textIf("reason", r.Reason).textIf("way", r.Way)
	if r.DryRun {
		l.truth("dry_run", true)
	}
	l.textIf("interrupted", r.Interrupted)
	if len(r.Notes) > 0 {
		l.add(zapcore.Field{Key: "notes", Type: zapcore.ArrayMarshalerType, Interface: texts(r.Notes)})
	}
	j.print(l.numberIf("entries_left", r.EntriesLeft).numberIf("directories_left", r.DirsLeft), true)
}
