// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"context"
	"log/slog"
)

// Trace is told what happens in a run. A nil field is told nothing; a nil Trace too.
//
// The fields are called one at a time, in the goroutine that called Tree; in that of the
// run in a Group. A call holds up the worker that reports, and has to return: a run that
// was cancelled waits for it. If it panics, the run ends with a sealed root, and then the
// panic goes on; in a Group, in each caller who is told of its end.
//
// A call that waits for another run may wait for ever: its own run has the lock of the
// volume, and one of the workers that all runs share.
type Trace struct {
	// Failure is told each failure as it happens. The error is an *fs.PathError
	// with the full path, the system call as Op, and the errno.
	Failure func(error)
	// Change is told each entry that was written (by Check: would be), with the
	// label it had, "" if it had none or was not read, and the one it got.
	// It costs a path for each such entry.
	Change func(path, from, to string)
	// Skip is told each mount, exclusion or refused directory that was left
	// alone, and why; with Change also what Apply left for its customizable type.
	Skip func(path, reason string)
	// Stall is told when nothing has moved for a second: what is left of the
	// work waits for these calls. It is told again after each time that something
	// moved.
	Stall func(calls []HungCall)
	// Note is told each of Report.Notes when it is made: what a caller should know
	// before the work is done is told before.
	Note func(text string)
	// Wait is told once who holds the volume's lock when the run has to wait for
	// another relabel of the same volume.
	Wait func(holder string)
}

// LogTo is a Trace that logs all but changes: a failure is an error, what is left
// alone or noted and what does not get on a warning, a wait for the lock an
// information. Each record has the attribute root.
func LogTo(l *slog.Logger, root string) *Trace { return logTo(l, root, slog.LevelError) }

// logTo is LogTo with no record above the level most.
func logTo(l *slog.Logger, root string, most slog.Level) *Trace {
	log := func(level slog.Level, text string, attrs ...any) {
		l.Log(context.Background(), min(level, most), text, append(attrs, "root", root)...)
	}
	return &Trace{
		Failure: func(err error) { log(slog.LevelError, "not labelled", "error", err) },
		Skip:    func(path, reason string) { log(slog.LevelWarn, "left alone", "path", path, "reason", reason) },
		Stall: func(calls []HungCall) {
			if len(calls) > 0 {
				log(slog.LevelWarn, "the filesystem does not answer", "calls", len(calls), "first", calls[0].String())
			}
		},
		Note: func(text string) { log(slog.LevelWarn, text) },
		Wait: func(holder string) { log(slog.LevelInfo, "waits for another relabel of the volume", "holder", holder) },
	}
}
