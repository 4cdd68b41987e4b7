// SPDX-License-Identifier: Apache-2.0

// Package exit has the command's exit codes, which of two is worse, and what of an
// error or of the end of a context leads to each.
package exit

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/fastlabel/fastlabel/relabel"
)

// Exit codes.
const (
	Done        = 0   // done, or nothing to do
	Failed      = 1   // some entries failed
	Usage       = 2   // the command line is wrong; nothing was begun
	Refused     = 3   // refused, or labels are not supported there
	Differs     = 4   // differences found: probe, verify, -n
	TimedOut    = 124 // --timeout, as timeout(1) has it
	Interrupted = 130 // SIGINT, as shells have it
	Terminated  = 143 // SIGTERM, SIGHUP
)

// Grace is the time after the end of its context that a run has to end: the engine returns
// within a second, but a reader of the output may never read.
const Grace = 5 * time.Second

// Worse returns the code that a run with all these outcomes ends with. The order is
// by what a script must not overlook. A run that was cut short says nothing
// about the rest, so that comes first. A failure outranks a refusal: scripts
// go on after 3 ("no labels to be had here"), and would go on over a volume
// that is labelled in part. A difference is an answer, not a fault.
func Worse(codes ...int) int {
	order, worst := []int{Done, Differs, Refused, Failed, Usage, TimedOut, Interrupted, Terminated}, 0
	for _, c := range codes {
		worst = max(worst, slices.Index(order, c))
	}
	return order[worst]
}

// Signal is the cause of a context that a signal ended.
type Signal struct{ Sig os.Signal }

func (s Signal) Error() string {
	return "interrupted by " + map[os.Signal]string{os.Interrupt: "SIGINT", syscall.SIGTERM: "SIGTERM", syscall.SIGHUP: "SIGHUP"}[s.Sig]
}

func (s Signal) Code() int {
	if s.Sig == os.Interrupt {
		return Interrupted
	}
	return Terminated
}

// Deadline is the cause of a context that --timeout ended.
type Deadline struct{ After time.Duration }

func (d Deadline) Error() string { return fmt.Sprintf("deadline of %v reached", d.After) }

// Of returns the exit code and the reason of a context that has ended.
func Of(ctx context.Context) (int, string) {
	var s Signal
	var d Deadline
	switch cause := context.Cause(ctx); {
	case errors.As(cause, &s):
		return s.Code(), s.Error()
	case errors.As(cause, &d):
		return TimedOut, d.Error()
	case errors.Is(cause, context.DeadlineExceeded):
		return TimedOut, "deadline reached"
	}
	return Interrupted, "interrupted"
}

// IsEnd reports whether err says no more than that ctx has ended.
func IsEnd(ctx context.Context, err error) bool {
	return ctx.Err() != nil && (errors.Is(err, context.Canceled) ||
		errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Cause(ctx)))
}

// Outcome turns what Tree returned into an exit code, and a reason if the tree
// was not done.
func Outcome(ctx context.Context, rep relabel.Report, err error, dry bool) (int, string) {
	switch {
	case errors.Is(err, relabel.ErrRefused):
		return Refused, "refused"
	case errors.Is(err, ErrDiffers):
		return Refused, "read-only"
	// Also a failure: a call that the end of ctx cut short may fail in any way.
	case err != nil && ctx.Err() != nil:
		return Of(ctx)
	// Met deeper down, ENOTSUP or ENOSYS is the failure of that entry.
	case errors.Is(err, errors.ErrUnsupported) && rep.Seen <= 1:
		return Refused, "unsupported"
	case err != nil || rep.Failed > 0:
		return Failed, "failed"
	case dry && rep.Written > 0:
		return Differs, ""
	case !rep.Complete:
		return Failed, "no commit"
	}
	return Done, ""
}

// ErrDiffers ends a run on a read-only PATH: not everything there has the label.
var ErrDiffers = errors.New("not everything has the label, and nothing was written")

// UsageError is a fault of the command line that is found after parsing.
type UsageError struct{ Err error }

func (e UsageError) Error() string { return e.Err.Error() }

// Code is the code for an error that has no report; other is that of most.
func Code(err error, other int) int {
	if errors.Is(err, relabel.ErrRefused) || errors.Is(err, errors.ErrUnsupported) {
		return Refused
	}
	return other
}
