// SPDX-License-Identifier: Apache-2.0

// Package child does the work in a child process, which can be left behind.
//
// A thread whose call never returns keeps its process from ending, by any signal,
// and its waiter waits for ever. So what may meet such a call is done in a child, which has the
// same standard streams. The parent does not wait for the child's end, but for a byte
// on a socket: its exit code, which follows all of its output.
//
// Both get the terminal's signals; the first of those sent to the parent is passed on
// too. The second ends the parent, and with it the child.
package child

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/exit"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/stream"
)

// env holds the parent's process id and the child's end of the socket.
const env = "FASTLABEL_CHILD_OF"

// Is reports whether this process was started by Run.
func Is() bool { return os.Getenv(env) != "" }

func socket() int {
	_, fd, _ := strings.Cut(os.Getenv(env), " ")
	n, _ := strconv.Atoi(fd)
	return n
}

// Begin gives the child its parent's name, and has it end with its parent.
func Begin() {
	if !strings.HasPrefix(os.Getenv(env), strconv.Itoa(os.Getppid())+" ") { // its parent is gone
		os.Exit(exit.Terminated)
	}
	_ = os.WriteFile("/proc/self/comm", []byte("fastlabel"), 0)
	fd := socket()
	syscall.CloseOnExec(fd)
	parent := os.NewFile(uintptr(fd), "parent")
	go func() {
		_, _ = parent.Read(make([]byte, 1)) // nothing comes but the end
		closeStreams()
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}()
}

// closeStreams lets who reads the output see its end, though a thread that hangs would
// keep it open.
func closeStreams() {
	for _, f := range []*os.File{os.Stdin, os.Stdout, os.Stderr} {
		_ = f.Close()
	}
}

// Leave is the last act of the child.
func Leave(code int) {
	fd := socket()
	closeStreams()
	_, _ = syscall.Write(fd, []byte{byte(code)})
	os.Exit(code)
}

// Run does the work in a child. It is not done if there can be none.
func Run(ctx context.Context) (code int, done bool) {
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		return 0, false
	}
	syscall.CloseOnExec(pair[0])
	process, err := os.StartProcess("/proc/self/exe", os.Args, &os.ProcAttr{
		Env:   append(os.Environ(), fmt.Sprintf("%s=%d %d", env, os.Getpid(), pair[1])),
		Files: []*os.File{os.Stdin, os.Stdout, os.Stderr},
	})
	_ = syscall.Close(pair[1])
	socket := os.NewFile(uintptr(pair[0]), "child")
	if err != nil {
		socket.Close()
		return 0, false
	}
	return wait(ctx, process, socket), true
}

// wait returns the code that the run ends with.
func wait(ctx context.Context, process *os.Process, socket *os.File) int {
	said, ended := make(chan int, 1), make(chan syscall.WaitStatus, 1)
	go func() {
		code := []byte{0}
		if _, err := io.ReadFull(socket, code); err == nil {
			said <- int(code[0])
		}
		close(said)
	}()
	go func() {
		if state, err := process.Wait(); err == nil {
			ended <- state.Sys().(syscall.WaitStatus)
		}
	}()
	end := ctx.Done()
	var late <-chan time.Time
	for {
		select {
		case code, spoke := <-said:
			if !spoke {
				return fell(process.Pid, <-ended)
			}
			select { // so that it is no orphan, if it can end
			case <-ended:
			case <-time.After(stream.Moment):
			}
			return code
		case <-end:
			var s exit.Signal
			if errors.As(context.Cause(ctx), &s) {
				_ = process.Signal(s.Sig)
			}
			end, late = nil, time.After(exit.Grace+time.Second) // it gives up before
		case <-late:
			code, reason := exit.Of(ctx)
			stream.LastWords(fmt.Sprintf("%s; process %d does not end", reason, process.Pid))
			return code
		}
	}
}

// fell returns the code for a child that ended without a word.
func fell(pid int, status syscall.WaitStatus) int {
	if status.Signaled() {
		stream.LastWords(fmt.Sprintf("process %d was ended by a signal: %v", pid, status.Signal()))
		return 128 + int(status.Signal())
	}
	if code := status.ExitStatus(); code != exit.Usage { // which would be Go's own
		return cmp.Or(code, exit.Failed)
	}
	return exit.Failed
}
