// SPDX-License-Identifier: Apache-2.0

package main

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

// newLogger logs to w from --log-level on; without the flag, nothing. There is
// no sampling (zap's production preset has it): the hundredth failure matters
// as much as the first.
func newLogger(w io.Writer, s *settings) logger {
	if s.logLevel == "" {
		return logger{zapcore.NewNopCore()}
	}
	level, err := zapcore.ParseLevel(s.logLevel)
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
	if s.logFormat == "json" {
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

// logged passes everything on, and logs it.
type logged struct {
	reporter
	logger
}

func (l logged) failure(root string, err error) {
	f := explain(root, err)
	l.log(zapcore.ErrorLevel, "failed", str("root", words.Plain(root)), str("path", words.Plain(f.path)),
		str("op", f.op), str("errno", errnoName(err)), str("text", f.text))
	l.reporter.failure(root, err)
}

func (l logged) skip(root, path, reason string) {
	l.log(zapcore.InfoLevel, "skipped", str("root", words.Plain(root)), str("path", words.Plain(path)), str("reason", words.Clean(reason)))
	l.reporter.skip(root, path, reason)
}

func (l logged) wait(root, holder string) {
	l.log(zapcore.InfoLevel, "waiting", str("root", words.Plain(root)), str("holder", words.Clean(holder)))
	l.reporter.wait(root, holder)
}

func (l logged) stall(root string, c relabel.HungCall) {
	l.log(zapcore.WarnLevel, "stalled", str("root", words.Plain(root)), str("path", words.Plain(c.Path)), str("call", c.Call))
	l.reporter.stall(root, c)
}

func (l logged) change(root, path, from, to string) {
	l.log(zapcore.DebugLevel, "changed", str("root", words.Plain(root)), str("path", words.Plain(path)), str("from", words.Plain(from)), str("to", to))
	l.reporter.change(root, path, from, to)
}

func (l logged) probed(p probeResult) {
	l.log(zapcore.InfoLevel, "probed", str("root", words.Plain(p.root)), str("label", p.label),
		truth("labelled", p.labelled), truth("interrupted", p.interrupted))
	l.reporter.probed(p)
}

func (l logged) result(r result) {
	for _, n := range r.Notes {
		l.log(zapcore.WarnLevel, "note", str("root", words.Plain(r.Root)), str("text", words.Clean(n)))
	}
	l.log(zapcore.InfoLevel, "ended", str("root", words.Plain(r.Root)), str("label", r.Label), str("way", r.Way),
		number("seen", r.Seen), number("written", r.Written), number("right", r.Right),
		number("vanished", r.Vanished), number("skipped", r.Skipped), number("failed", r.Failed),
		truth("trusted", r.Trusted), truth("complete", r.Complete), span("elapsed", r.Elapsed),
		number("exit", int64(r.code)), str("reason", r.reason))
	l.reporter.result(r)
}
