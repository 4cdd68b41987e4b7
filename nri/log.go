// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"

	"go.uber.org/zap/zapcore"

	"github.com/fastlabel/fastlabel/relabel"
)

// sink writes records by zap's core. Package zap itself serves levels over HTTP, and
// net/http is a third of the program.
type sink struct{ zapcore.Core }

// newLogger logs to w as JSON, from a level on. There is no sampling.
func newLogger(w io.Writer, from string) (*slog.Logger, error) {
	level, err := zapcore.ParseLevel(from)
	if err != nil {
		return nil, fmt.Errorf("--log-level: %w", err)
	}
	c := zapcore.EncoderConfig{
		TimeKey: "ts", LevelKey: "level", MessageKey: "msg",
		EncodeTime:     zapcore.RFC3339NanoTimeEncoder,
		EncodeLevel:    zapcore.LowercaseLevelEncoder,
		EncodeDuration: zapcore.SecondsDurationEncoder,
	}
	return slog.New(sink{zapcore.NewCore(zapcore.NewJSONEncoder(c), zapcore.Lock(zapcore.AddSync(w)), level)}), nil
}

func (s sink) Enabled(_ context.Context, l slog.Level) bool { return s.Core.Enabled(levelOf(l)) }

func (s sink) Handle(_ context.Context, r slog.Record) error {
	if e := s.Check(zapcore.Entry{Level: levelOf(r.Level), Time: r.Time, Message: r.Message}, nil); e != nil {
		var fields []zapcore.Field
		r.Attrs(func(a slog.Attr) bool {
			fields = append(fields, fieldOf(a))
			return true
		})
		e.Write(fields...)
	}
	return nil
}

func (s sink) WithAttrs(attrs []slog.Attr) slog.Handler {
	var fields []zapcore.Field
	for _, a := range attrs {
		fields = append(fields, fieldOf(a))
	}
	return sink{s.With(fields)}
}

func (s sink) WithGroup(name string) slog.Handler {
	return sink{s.With([]zapcore.Field{{Key: name, Type: zapcore.NamespaceType}})}
}

func levelOf(l slog.Level) zapcore.Level {
	switch {
	case l >= slog.LevelError:
		return zapcore.ErrorLevel
	case l >= slog.LevelWarn:
		return zapcore.WarnLevel
	case l >= slog.LevelInfo:
		return zapcore.InfoLevel
	}
	return zapcore.DebugLevel
}

func fieldOf(a slog.Attr) zapcore.Field {
	v := a.Value.Resolve()
	switch v.Kind() {
	case slog.KindInt64:
		return zapcore.Field{Key: a.Key, Type: zapcore.Int64Type, Integer: v.Int64()}
	case slog.KindDuration:
		return zapcore.Field{Key: a.Key, Type: zapcore.DurationType, Integer: int64(v.Duration())}
	case slog.KindBool:
		f := zapcore.Field{Key: a.Key, Type: zapcore.BoolType}
		if v.Bool() {
			f.Integer = 1
		}
		return f
	case slog.KindAny:
		if v.Any() == nil { // no error
			return zapcore.Field{Type: zapcore.SkipType}
		}
	}
	return zapcore.Field{Key: a.Key, Type: zapcore.StringType, String: v.String()}
}

// stubLog is the log of package nri: what it says of each connection is of use to
// who looks for a fault in it.
type stubLog struct{ *slog.Logger }

func (s stubLog) Debugf(_ context.Context, f string, a ...any) { s.Debug(fmt.Sprintf(f, a...)) }
func (s stubLog) Infof(_ context.Context, f string, a ...any)  { s.Debug(fmt.Sprintf(f, a...)) }
func (s stubLog) Warnf(_ context.Context, f string, a ...any)  { s.Warn(fmt.Sprintf(f, a...)) }
func (s stubLog) Errorf(_ context.Context, f string, a ...any) { s.Warn(fmt.Sprintf(f, a...)) }

// trace logs what holds the run of a volume up or is skipped. Failures are counted in
// the error of the run, and the first are in it.
func (l *labeller) trace(root string) *relabel.Trace {
	t := relabel.LogTo(l.log, root)
	t.Failure, t.Change = nil, l.change
	return t
}
