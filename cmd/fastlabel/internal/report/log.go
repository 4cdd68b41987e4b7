// SPDX-License-Identifier: Apache-2.0

package report

import (
	"io"
	"time"

	"go.uber.org/zap/zapcore"

	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/words"
	"github.com/fastlabel/fastlabel/relabel"
)

// logger is zap's core without its front: package zap itself serves levels over
// HTTP, and net/http with what that needs is a quarter of the program and half a
// millisecond of each start.
type logger struct{ core zapcore.Core }

// newLogger logs to w from a level on. There is no
// sampling (zap's production preset has it): the hundredth failure matters
// as much as the first.
func newLogger(w io.Writer, from, format string) logger {
	level, err := zapcore.ParseLevel(from)
	if err != nil { // the flag takes no other
		level = zapcore.DebugLevel
	}
	c := zapcore.EncoderConfig{
		TimeKey: "ts", LevelKey: "level", MessageKey: "msg",
		EncodeTime:     zapcore.RFC3339NanoTimeEncoder,
		EncodeLevel:    zapcore.LowercaseLevelEncoder,
		EncodeDuration: zapcore.SecondsDurationEncoder,
	}
	encoder := zapcore.NewConsoleEncoder(c)
	if format == "json" {
		encoder = zapcore.NewJSONEncoder(c)
	}
	return logger{zapcore.NewCore(encoder, zapcore.AddSync(w), level)}
}

func (l logger) log(level zapcore.Level, message string, fields ...zapcore.Field) {
	if ce := l.core.Check(zapcore.Entry{Level: level, Time: time.Now(), Message: message}, nil); ce != nil {
		ce.Write(fields...)
	}
}

func str(key, value string) zapcore.Field {
	return zapcore.Field{Key: key, Type: zapcore.StringType, String: words.Clean(value)}
}

func number(key string, value int64) zapcore.Field {
	return zapcore.Field{Key: key, Type: zapcore.Int64Type, Integer: value}
}

func truth(key string, value bool) zapcore.Field {
	f := zapcore.Field{Key: key, Type: zapcore.BoolType}
	if value {
		f.Integer = 1
	}
	return f
}

func span(key string, value time.Duration) zapcore.Field {
	return zapcore.Field{Key: key, Type: zapcore.DurationType, Integer: int64(value)}
}

// Log logs to w, from a level on, what is told to r.
func Log(r Reporter, w io.Writer, level, format string) Reporter {
	return logged{r, newLogger(w, level, format)}
}

// logged passes everything on, and logs it.
type logged struct {
	Reporter
	logger
}

func (l logged) Failure(root string, err error) {
	f := FaultOf(root, err)
	l.log(zapcore.ErrorLevel, "failed", str("root", words.Plain(root)), str("path", words.Plain(f.path)),
		str("op", f.op), str("errno", errnoName(err)), str("text", f.text))
	l.Reporter.Failure(root, err)
}

func (l logged) Skip(root, path, reason string) {
	l.log(zapcore.InfoLevel, "skipped", str("root", words.Plain(root)), str("path", words.Plain(path)), str("reason", words.Clean(reason)))
	l.Reporter.Skip(root, path, reason)
}

func (l logged) Wait(root, holder string) {
	l.log(zapcore.InfoLevel, "waiting", str("root", words.Plain(root)), str("holder", words.Clean(holder)))
	l.Reporter.Wait(root, holder)
}

func (l logged) Stall(root string, c relabel.HungCall) {
	l.log(zapcore.WarnLevel, "stalled", str("root", words.Plain(root)), str("path", words.Plain(c.Path)), str("call", c.Call))
	l.Reporter.Stall(root, c)
}

func (l logged) Change(root, path, from, to string) {
	l.log(zapcore.DebugLevel, "changed", str("root", words.Plain(root)), str("path", words.Plain(path)), str("from", words.Plain(from)), str("to", to))
	l.Reporter.Change(root, path, from, to)
}

func (l logged) Probed(p Probe) {
	l.log(zapcore.InfoLevel, "probed", str("root", words.Plain(p.Root)), str("label", p.Label),
		truth("labelled", p.Labelled), truth("interrupted", p.Interrupted))
	l.Reporter.Probed(p)
}

func (l logged) Result(r Result) {
	for _, n := range r.Notes {
		l.log(zapcore.WarnLevel, "note", str("root", words.Plain(r.Root)), str("text", words.Clean(n)))
	}
	l.log(zapcore.InfoLevel, "ended", str("root", words.Plain(r.Root)), str("label", r.Label), str("way", r.Way),
		number("seen", r.Seen), number("written", r.Written), number("right", r.Right),
		number("vanished", r.Vanished), number("skipped", r.Skipped), number("failed", r.Failed),
		truth("trusted", r.Trusted), truth("complete", r.Complete), span("elapsed", r.Elapsed),
		number("exit", int64(r.Code)), str("reason", r.Reason))
	l.Reporter.Result(r)
}
