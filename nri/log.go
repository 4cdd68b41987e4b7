// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"

	"go.uber.org/zap/exp/zapslog"
	"go.uber.org/zap/zapcore"
)

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
	return slog.New(zapslog.NewHandler(zapcore.NewCore(zapcore.NewJSONEncoder(c), zapcore.AddSync(w), level))), nil
}

// stubLog is the log of package nri: what it says of each connection is of use to
// who looks for a fault in it.
type stubLog struct{ *slog.Logger }

func (s stubLog) Debugf(_ context.Context, f string, a ...any) { s.Debug(fmt.Sprintf(f, a...)) }
func (s stubLog) Infof(_ context.Context, f string, a ...any)  { s.Debug(fmt.Sprintf(f, a...)) }
func (s stubLog) Warnf(_ context.Context, f string, a ...any)  { s.Warn(fmt.Sprintf(f, a...)) }
func (s stubLog) Errorf(_ context.Context, f string, a ...any) { s.Warn(fmt.Sprintf(f, a...)) }
