// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/exit"
)

// interruptible returns a context that SIGINT, SIGTERM and SIGHUP end, with the
// signal as its cause. One that was ignored at the start, as by nohup, stays
// ignored. The first signal lets the engine stop in good order, which may
// take as long as a system call on a dead server: the second calls leave, with
// its own exit code, unless it is SIGHUP: where a session drops, both the kernel
// and the shell send it. SIGPIPE is ignored: a write to a closed pipe is then an
// error like any other, and the exit code is ours.
func interruptible(leave func(code int)) context.Context {
	signal.Ignore(syscall.SIGPIPE)
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 2)
	for _, sig := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP} {
		if !signal.Ignored(sig) {
			signal.Notify(signals, sig)
		}
	}
	go func() {
		for first := true; ; first = false {
			sig := <-signals
			if !first && sig != syscall.SIGHUP {
				leave(exit.Signal{Sig: sig}.Code())
			}
			cancel(exit.Signal{Sig: sig})
		}
	}()
	return ctx
}
