// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/fastlabel/fastlabel/relabel"
)

// newLogger logs to w from --log-level on; without the flag, nothing. There is
// no sampling (zap's production preset has it): the hundredth failure matters
// as much as the first.
func newLogger(w io.Writer, s *settings) *zap.Logger {
	if s.logLevel == "" {
		return zap.NewNop()
	}
	level, err := zapcore.ParseLevel(s.logLevel)
	if err != nil { // the flag takes no other
		level = zapcore.DebugLevel
	}
	c := zap.NewProductionEncoderConfig()
	c.EncodeTime = zapcore.RFC3339NanoTimeEncoder
	encoder := zapcore.NewConsoleEncoder(c)
	if s.logFormat == "json" {
		encoder = zapcore.NewJSONEncoder(c)
	}
	return zap.New(zapcore.NewCore(encoder, zapcore.AddSync(w), level))
}

// logged passes everything on, and logs it.
type logged struct {
	reporter
	log *zap.Logger
}

func (l logged) failure(root string, err error) {
	f := explain(root, err)
	l.log.Error("failed", zap.String("root", plain(root)), zap.String("path", plain(f.path)),
		zap.String("op", f.op), zap.String("errno", errnoName(err)), zap.String("text", f.text))
	l.reporter.failure(root, err)
}

func (l logged) skip(root, path, reason string) {
	l.log.Info("skipped", zap.String("root", plain(root)), zap.String("path", plain(path)), zap.String("reason", clean(reason)))
	l.reporter.skip(root, path, reason)
}

func (l logged) wait(root, holder string) {
	l.log.Info("waiting", zap.String("root", plain(root)), zap.String("holder", clean(holder)))
	l.reporter.wait(root, holder)
}

func (l logged) stall(root string, c relabel.HungCall) {
	l.log.Warn("stalled", zap.String("root", plain(root)), zap.String("path", plain(c.Path)), zap.String("call", c.Call))
	l.reporter.stall(root, c)
}

func (l logged) change(root, path, from, to string) {
	l.log.Debug("changed", zap.String("root", plain(root)), zap.String("path", plain(path)), zap.String("from", plain(from)), zap.String("to", to))
	l.reporter.change(root, path, from, to)
}

func (l logged) probed(p probeResult) {
	l.log.Info("probed", zap.String("root", plain(p.root)), zap.String("label", p.label),
		zap.Bool("labelled", p.labelled), zap.Bool("interrupted", p.interrupted))
	l.reporter.probed(p)
}

func (l logged) result(r result) {
	for _, n := range r.Notes {
		l.log.Warn("note", zap.String("root", plain(r.Root)), zap.String("text", clean(n)))
	}
	l.log.Info("ended", zap.String("root", plain(r.Root)), zap.String("label", r.Label), zap.String("way", r.Way),
		zap.Int64("seen", r.Seen), zap.Int64("written", r.Written), zap.Int64("right", r.Right),
		zap.Int64("vanished", r.Vanished), zap.Int64("skipped", r.Skipped), zap.Int64("failed", r.Failed),
		zap.Bool("trusted", r.Trusted), zap.Bool("complete", r.Complete), zap.Duration("elapsed", r.Elapsed),
		zap.Int("exit", r.code), zap.String("reason", r.reason))
	l.reporter.result(r)
}
