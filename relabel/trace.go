// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"context"
	"log/slog"
)

// Trace has callbacks for what happens in a run. Each may be nil.
//
// A run calls them one at a time, in the goroutine that called Tree; in that of the run in a Group.
// A worker waits for the callback, which has to return, and must not wait for another run. If one
// panics, the run ends with a sealed root, and then the panic continues; in a Group, in each caller
// who learns of its end, as an error.
type Trace struct {
	Failure func(error) // each failure as it happens: an *fs.PathError with the system call as Op
	// Change gets each entry that was written (by Verify: would be), with the label it had, "" if
	// it had none or was not read, and the new one. It costs a path for each such entry.
	Change func(path, from, to string)
	// Skip gets each mount, exclusion or refused directory that was skipped, and why; with
	// Change also what Apply skipped for its customizable type.
	Skip func(path, reason string)
	// Stall gets the calls that the run waits for when nothing has moved for a second, and
	// again each time after something moved.
	Stall func(calls []HungCall)
	Note  func(text string) // each of Report.Notes when it is made, maybe before the first change
	Wait  func()            // once, if the run has to wait for the volume's lock
}

// LogTo returns a Trace that logs all but changes: a failure as an error; what is skipped, notes
// and stalls as warnings; a wait for the lock as information. Each record has the attribute root.
func LogTo(l *slog.Logger, root string) *Trace {
	log := func(level slog.Level, text string, attrs ...any) {
		l.Log(context.Background(), level, text, append(attrs, "root", root)...)
	}
	return &Trace{
		Failure: func(err error) { log(slog.LevelError, "not labelled", "error", err) },
		Skip:    func(path, reason string) { log(slog.LevelWarn, "skipped", "path", path, "reason", reason) },
		Stall: func(calls []HungCall) {
			if len(calls) > 0 {
				log(slog.LevelWarn, "the filesystem does not answer", "calls", len(calls), "first", calls[0].String())
			}
		},
		Note: func(text string) { log(slog.LevelWarn, text) },
		Wait: func() { log(slog.LevelInfo, "waits for another relabel of the volume") },
	}
}
