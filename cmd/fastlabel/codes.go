// SPDX-License-Identifier: Apache-2.0

package main

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
	exitDone        = 0   // done, or nothing to do
	exitFailed      = 1   // some entries failed
	exitUsage       = 2   // the command line is wrong; nothing was begun
	exitRefused     = 3   // refused, or labels are not supported there
	exitDiffers     = 4   // differences found: probe, verify, -n
	exitDeadline    = 124 // --timeout, as timeout(1) has it
	exitInterrupted = 130 // SIGINT, as shells have it
	exitTerminated  = 143 // SIGTERM, SIGHUP
)

// worse returns the code that a run with both outcomes ends with. The order is
// by what a script must not overlook. A run that was cut short says nothing
// about the rest, so that comes first. A failure outranks a refusal: scripts
// go on after 3 ("no labels to be had here"), and would go on over a volume
// that is labelled in part. A difference is an answer, not a fault.
func worse(a, b int) int {
	order := []int{exitDone, exitDiffers, exitRefused, exitFailed, exitUsage, exitDeadline, exitInterrupted, exitTerminated}
	return order[max(slices.Index(order, a), slices.Index(order, b))]
}

// signalled is the cause of a context that a signal ended.
type signalled struct{ sig os.Signal }

func (s signalled) Error() string {
	name := "SIGINT"
	switch s.sig {
	case syscall.SIGTERM:
		name = "SIGTERM"
	case syscall.SIGHUP:
		name = "SIGHUP"
	}
	return "interrupted by " + name
}

func (s signalled) code() int {
	if s.sig == os.Interrupt {
		return exitInterrupted
	}
	return exitTerminated
}

// deadline is the cause of a context that --timeout ended.
type deadline struct{ after time.Duration }

func (d deadline) Error() string { return fmt.Sprintf("deadline of %v reached", d.after) }

// endOf returns the exit code and the reason of a context that has ended.
func endOf(ctx context.Context) (int, string) {
	var s signalled
	var d deadline
	switch cause := context.Cause(ctx); {
	case errors.As(cause, &s):
		return s.code(), s.Error()
	case errors.As(cause, &d):
		return exitDeadline, d.Error()
	case errors.Is(cause, context.DeadlineExceeded):
		return exitDeadline, "deadline reached"
	}
	return exitInterrupted, "interrupted"
}

// isEnd tells whether err says no more than that ctx has ended.
func isEnd(ctx context.Context, err error) bool {
	return ctx.Err() != nil && (errors.Is(err, context.Canceled) ||
		errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Cause(ctx)))
}

// outcome turns what Tree returned into an exit code, and a reason if the tree
// was not done.
func outcome(ctx context.Context, rep relabel.Report, err error, dry bool) (int, string) {
	switch {
	case errors.Is(err, relabel.ErrRefused):
		return exitRefused, "refused"
	case errors.Is(err, errDiffers):
		return exitRefused, "read-only"
	// Also a failure: a call that the end of ctx cut short may fail in any way.
	case err != nil && ctx.Err() != nil:
		return endOf(ctx)
	// Met deeper down, ENOTSUP or ENOSYS is the failure of that entry.
	case errors.Is(err, errors.ErrUnsupported) && rep.Seen <= 1:
		return exitRefused, "unsupported"
	case err != nil || rep.Failed > 0:
		return exitFailed, "failed"
	case dry && rep.Written > 0:
		return exitDiffers, ""
	case !rep.Complete:
		return exitFailed, "no commit"
	}
	return exitDone, ""
}
