// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// A thread whose call never returns keeps its process from ending, whoever
// kills it, and whoever waits for that process waits for ever. So what may
// meet such a call is done in a child, the part, and this process does not
// wait for its end but for what it says on a socket: its exit code, after all
// of its output.
//
// Both have the terminal's signals; what this process gets is passed on too.
// The second ends this process, and with it, by SIGKILL, the part.

// partEnv holds the parent's process id and the part's end of the socket.
const partEnv = "FASTLABEL_PART_OF"

// partGrace is how long after the end of its context the part is waited for:
// the engine gives up after half a second.
const partGrace = 800 * time.Millisecond

// isPart tells whether this process is the part of its parent.
func isPart() bool { return partSocket() >= 0 }

func partSocket() int {
	parent, fd, _ := strings.Cut(os.Getenv(partEnv), " ")
	if n, err := strconv.Atoi(fd); err == nil && parent == strconv.Itoa(os.Getppid()) {
		return n
	}
	return -1
}

// beginPart gives the part the name of its parent: it is run by another.
func beginPart() {
	_ = os.WriteFile("/proc/self/comm", []byte("fastlabel"), 0)
	go endWithParent()
}

// endWithParent kills the part when its parent is gone, where the kernel does
// not: it forgets the death signal of a program that has file capabilities.
func endWithParent() {
	if _, err := syscall.Read(partSocket(), make([]byte, 1)); err == nil {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}
}

// isOwnPipe tells whether path leads to the part's output: by /dev/stdout the user
// means what this command prints to, which the part does not have.
func isOwnPipe(path string) bool {
	if !isPart() {
		return false
	}
	info, err := os.Stat(path)
	return err == nil && slices.ContainsFunc([]*os.File{os.Stdout, os.Stderr}, func(f *os.File) bool {
		out, err := f.Stat()
		return err == nil && os.SameFile(info, out)
	})
}

// leavePart is the last act of the part.
func leavePart(code int) {
	socket := partSocket()
	for _, f := range []*os.File{os.Stdin, os.Stdout, os.Stderr} { // what hangs would hold them open
		_ = f.Close()
	}
	_, _ = syscall.Write(socket, []byte{byte(code)})
	os.Exit(code)
}

// apart does the work in a part, if it may hang.
func apart(ctx context.Context, s *settings, paths []string) (code int, done, told bool) {
	if isPart() || !mayHang(ctx, s, paths) {
		return 0, false, false
	}
	return inPart(ctx)
}

func inPart(ctx context.Context) (code int, done, told bool) {
	p, err := startPart()
	if err != nil { // as well as can be, here
		return 0, false, false
	}
	code, told = p.wait(ctx)
	return code, true, told
}

// part is the child, as its parent knows it.
type part struct {
	process *os.Process
	socket  *os.File
	stdout  *passage
	stderr  *passage // may be stdout
}

// startPart gives the part what this process was given: stdin, which any path may
// lead to, and descriptors such as 63 for a list. Only its output is a pipe.
func startPart() (*part, error) {
	runtime.LockOSThread() // the death signal is sent when this thread ends
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		return nil, err
	}
	syscall.CloseOnExec(pair[0])
	p := &part{socket: os.NewFile(uintptr(pair[0]), "socket")}
	defer func() { _ = syscall.Close(pair[1]) }()
	var stdout *os.File
	if p.stdout, stdout, err = passTo(os.Stdout); err != nil {
		return nil, err
	}
	defer stdout.Close()
	stderr := stdout
	if p.stderr = p.stdout; !sameFile(os.Stdout, os.Stderr) { // or the order of lines is lost
		if p.stderr, stderr, err = passTo(os.Stderr); err != nil {
			return nil, err
		}
		defer stderr.Close()
	}
	p.process, err = os.StartProcess("/proc/self/exe", os.Args, &os.ProcAttr{
		Env:   append(os.Environ(), fmt.Sprintf("%s=%d %d", partEnv, os.Getpid(), pair[1])),
		Files: []*os.File{os.Stdin, stdout, stderr},
		Sys:   &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL},
	})
	return p, err
}

// wait returns the code that the run ends with, and whether the part came to its
// end: it has then told all.
func (p *part) wait(ctx context.Context) (code int, told bool) {
	said := make(chan int, 1)
	go func() {
		b := []byte{0}
		if _, err := io.ReadFull(p.socket, b); err != nil {
			said <- -1 // it ends without a word
			return
		}
		said <- int(b[0])
	}()
	ended := make(chan syscall.WaitStatus, 1)
	go func() {
		state, err := p.process.Wait()
		if err == nil {
			ended <- state.Sys().(syscall.WaitStatus)
		}
	}()
	asked := make(chan os.Signal, 1)
	notifyAsked(asked)
	end := ctx.Done()
	var late <-chan time.Time
	look := time.NewTicker(time.Second)
	defer look.Stop()
	wasDead := false
	for {
		select {
		case code := <-said:
			if code < 0 {
				return p.fell(<-ended), false
			}
			<-p.stdout.done
			<-p.stderr.done
			if p.stdout.err != nil {
				code = worse(code, stdoutFailed(os.Stderr, p.stdout.err))
			}
			select { // so that it is no orphan, if it can end
			case <-ended:
			case <-time.After(50 * time.Millisecond):
			}
			return code, true
		case <-look.C:
			status, dead := leaderDead(p.process.Pid)
			if dead && wasDead { // its last word would have come
				return p.fell(status), false
			}
			wasDead = dead
		case sig := <-asked:
			_ = p.process.Signal(sig)
		case <-end:
			var s signalled
			if errors.As(context.Cause(ctx), &s) {
				_ = p.process.Signal(s.sig)
			}
			end, late = nil, time.After(partGrace)
		case <-late:
			if p.stdout.busy.Load() || p.stderr.busy.Load() { // whoever reads is slow
				late = time.After(partGrace / 8)
				continue
			}
			wipe(os.Stderr)
			code, reason := endOf(ctx)
			fmt.Fprintf(os.Stderr, "fastlabel: %s; process %d does not end\n", reason, p.process.Pid)
			return code, false
		}
	}
}

// fell tells of a part that ended without a word.
func (p *part) fell(status syscall.WaitStatus) int {
	for _, out := range []*passage{p.stdout, p.stderr} {
		select {
		case <-out.done:
		case <-time.After(100 * time.Millisecond): // a call that hangs holds it open
		}
	}
	if status.Signaled() {
		wipe(os.Stderr)
		fmt.Fprintf(os.Stderr, "fastlabel: process %d was ended by a signal: %v\n", p.process.Pid, status.Signal())
		return 128 + int(status.Signal())
	}
	return cmp.Or(status.ExitStatus(), exitFailed)
}

// leaderDead tells whether a child has ended but for threads that hang, and
// how (proc_pid_stat(5)).
func leaderDead(pid int) (syscall.WaitStatus, bool) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, _ := strings.Cut(string(text), ") ")
	f := strings.Fields(rest)
	if err != nil || len(f) < 50 || f[0] != "Z" {
		return 0, false
	}
	n, err := strconv.ParseUint(f[49], 10, 32)
	return syscall.WaitStatus(n), err == nil
}
