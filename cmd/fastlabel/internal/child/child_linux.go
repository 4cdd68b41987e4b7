// SPDX-License-Identifier: Apache-2.0

// Package child does the work in a child process, which can be left behind.
//
// A thread whose call never returns keeps its process from ending, by any signal,
// and its waiter waits for ever. So what may meet such a call is done in a child.
// This process does not wait for the child's end, but for what it says on
// a socket: its exit code, after all of its output.
//
// Both get the terminal's signals; those sent to the parent are passed on too. The
// second signal ends the parent, and with it, by SIGKILL, the child.
package child

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/exit"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/stream"
)

// env holds the parent's process id and the child's end of the socket.
const env = "FASTLABEL_CHILD_OF"

const (
	// Grace is the time after the end of its context that the child is waited for
	// while it does nothing: the engine gives up after half a second.
	Grace = 800 * time.Millisecond
	// often passes between two looks at it then, and idle without a change before that
	// counts.
	often, idle = Grace / 16, Grace / 4
	// longest is the longest time that it may work on without a word.
	longest = 30 * time.Second
	// seldom passes between two looks before, and its last word may take as long.
	seldom = time.Second
)

// Is reports whether this process was started by Run.
func Is() bool { return socket() >= 0 }

func socket() int {
	parent, fd, _ := strings.Cut(os.Getenv(env), " ")
	if n, err := strconv.Atoi(fd); err == nil && parent == strconv.Itoa(os.Getppid()) {
		return n
	}
	return -1
}

// Begin gives the child its parent's name. SIGUSR1 to both, as by that name, is answered
// once: by way of the parent.
func Begin(asked chan<- os.Signal) {
	signal.Ignore(syscall.SIGUSR1)
	_ = os.WriteFile("/proc/self/comm", []byte("fastlabel"), 0)
	go watchParent(asked)
}

// watchParent passes on what the parent asks, a byte each, and kills the child when its
// parent is gone, where the kernel does not: it forgets the death signal of a program
// that has file capabilities.
func watchParent(asked chan<- os.Signal) {
	for {
		n, err := syscall.Read(socket(), make([]byte, 1))
		switch {
		case err == syscall.EINTR:
			continue
		case err != nil:
			return
		case n == 0:
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
		select {
		case asked <- syscall.SIGUSR1:
		default: // an answer is due already
		}
	}
}

// Leave is the last act of the child.
func Leave(code int) {
	fd := socket()
	for _, f := range []*os.File{os.Stdin, os.Stdout, os.Stderr} { // what hangs would hold them open
		_ = f.Close()
	}
	_, _ = syscall.Write(fd, []byte{byte(code)})
	os.Exit(code)
}

// Run does the work in a child, which writes to stdout and to screen. It is not done if there
// can be none.
func Run(ctx context.Context, screen *stream.Screen) (code int, done bool) {
	c, err := start(screen)
	if err != nil { // as well as can be, here
		return 0, false
	}
	return c.wait(ctx), true
}

// child is the child as its parent knows it.
type child struct {
	process        *os.Process
	socket         *os.File
	stdout, stderr *passage // may be one
	moved          int64    // bytes of both, when it was last asked
	ticks          uint64   // of processors' time, likewise
}

// start gives the child what this process was given: stdin, which any path may
// lead to, and descriptors such as 63 for a list. Only its output is a pipe.
func start(screen *stream.Screen) (*child, error) {
	runtime.LockOSThread() // the death signal is sent when this thread ends
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		return nil, err
	}
	syscall.CloseOnExec(pair[0])
	defer func() { _ = syscall.Close(pair[1]) }()
	c := &child{socket: os.NewFile(uintptr(pair[0]), "socket")}
	var out io.Writer = os.Stdout
	if stream.IsTerminal(os.Stdout) {
		out = screen.Beside(out)
	}
	var stdout, stderr *os.File
	if c.stdout, stdout, err = pass(out); err != nil {
		return nil, err
	}
	defer stdout.Close()
	stderr, c.stderr = stdout, c.stdout
	one, err := os.Stdout.Stat()
	two, err2 := os.Stderr.Stat()
	if err != nil || err2 != nil || !os.SameFile(one, two) { // else the order of lines would be lost
		if c.stderr, stderr, err = pass(screen); err != nil {
			return nil, err
		}
		defer stderr.Close()
	}
	c.process, err = os.StartProcess("/proc/self/exe", os.Args, &os.ProcAttr{
		Env:   append(os.Environ(), fmt.Sprintf("%s=%d %d", env, os.Getpid(), pair[1])),
		Files: []*os.File{os.Stdin, stdout, stderr},
		Sys:   &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL},
	})
	return c, err
}

// passage copies what the child writes, piece by piece: a slow reader is seen to read.
type passage struct {
	busy  atomic.Bool  // a piece is not taken at the moment
	moved atomic.Int64 // bytes
	err   error        // the first; what comes after it is dropped
	done  chan struct{}
}

// pass begins one, and returns the end that the child writes to.
func pass(to io.Writer) (*passage, *os.File, error) {
	from, end, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	p := &passage{done: make(chan struct{})}
	go func() {
		defer close(p.done)
		for buf := make([]byte, 16<<10); err == nil; {
			var n int
			if n, err = from.Read(buf); n > 0 && p.err == nil {
				p.busy.Store(true)
				_, p.err = to.Write(buf[:n])
				p.busy.Store(false)
				p.moved.Add(int64(n))
			}
		}
	}()
	return p, end, nil
}

// wait returns the code that the run ends with.
func (c *child) wait(ctx context.Context) (code int) {
	said, ended, passed := make(chan int, 1), make(chan syscall.WaitStatus, 1), make(chan int, 1)
	go func() {
		b := []byte{0}
		if _, err := io.ReadFull(c.socket, b); err != nil {
			said <- -1 // it ends without a word
			return
		}
		said <- int(b[0])
		<-c.stdout.done
		<-c.stderr.done
		passed <- int(b[0])
	}()
	go func() {
		if state, err := c.process.Wait(); err == nil {
			ended <- state.Sys().(syscall.WaitStatus)
		}
	}()
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGUSR1) // by who wants to know how far it is
	end, look := ctx.Done(), time.NewTimer(seldom)
	var over, worked, died time.Time
	spoke := false
	for {
		select {
		case last := <-said:
			if last < 0 {
				return c.fell(<-ended)
			}
			spoke = true
		case code = <-passed: // all that it wrote
			if c.stdout.err != nil {
				code = exit.Worse(code, stream.Failed(os.Stderr, c.stdout.err))
			}
			select { // so that it is no orphan, if it can end
			case <-ended:
			case <-time.After(often):
			}
			return code
		case <-asked:
			_, _ = c.socket.Write([]byte{1}) // or it is over
		case <-end:
			end, over = nil, time.Now()
			var s exit.Signal
			if errors.As(context.Cause(ctx), &s) {
				_ = c.process.Signal(s.Sig)
			}
			c.moves()
			c.works()
			look.Reset(often)
		case now := <-look.C:
			status, dead := leaderDead(c.process.Pid)
			switch {
			case !dead:
				died = time.Time{}
			case died.IsZero():
				died = now
			case now.Sub(died) >= seldom && !spoke: // its last word would have come
				return c.fell(status)
			}
			if end != nil {
				look.Reset(seldom)
				continue
			}
			if c.moves() || now.Sub(over) < longest && c.works() {
				worked = now
			}
			if now.Sub(over) >= Grace && now.Sub(worked) >= idle {
				return c.leave(ctx)
			}
			look.Reset(often)
		}
	}
}

// leave prints why the child is left behind, and returns the code for that.
func (c *child) leave(ctx context.Context) int {
	code, reason := exit.Of(ctx)
	why := fmt.Sprintf("process %d does not end", c.process.Pid)
	if c.stdout.busy.Load() || c.stderr.busy.Load() {
		why = "what it prints is not read"
	}
	lastWords(reason + "; " + why)
	return code
}

// moves reports whether something was passed on since it was last asked.
func (c *child) moves() bool {
	before := c.moved
	c.moved = c.stdout.moved.Load() + c.stderr.moved.Load()
	return c.moved != before
}

// works reports whether the child used a processor since it was last asked, or waits
// for one: it does not hang then (proc_pid_stat(5)).
func (c *child) works() bool {
	before, sum := c.ticks, uint64(0)
	if f := statOf(fmt.Sprintf("/proc/%d/stat", c.process.Pid)); len(f) > 12 {
		for _, field := range f[11:13] { // utime, stime
			n, _ := strconv.ParseUint(field, 10, 64)
			sum += n
		}
	}
	if c.ticks = sum; sum > before+1 {
		return true
	}
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", c.process.Pid))
	return slices.ContainsFunc(tasks, func(file string) bool {
		f := statOf(file)
		return len(f) > 0 && f[0] == "R"
	})
}

// lastWords prints a line, for which it takes no time where stderr is not read.
func lastWords(text string) {
	said := make(chan bool, 1)
	go func() {
		stream.Wipe(os.Stderr)
		fmt.Fprintf(os.Stderr, "fastlabel: %s\n", text)
		said <- true
	}()
	select {
	case <-said:
	case <-time.After(often):
	}
}

// fell returns the code for a child that ended without a word.
func (c *child) fell(status syscall.WaitStatus) int {
	for _, out := range []*passage{c.stdout, c.stderr} {
		select {
		case <-out.done:
		case <-time.After(often): // a call that hangs holds it open
		}
	}
	if status.Signaled() {
		lastWords(fmt.Sprintf("process %d was ended by a signal: %v", c.process.Pid, status.Signal()))
		return 128 + int(status.Signal())
	}
	if code := status.ExitStatus(); code != exit.Usage { // which would be Go's own
		return cmp.Or(code, exit.Failed)
	}
	return exit.Failed
}

// leaderDead reports whether a child has ended but for threads that hang, and
// how (proc_pid_stat(5)).
func leaderDead(pid int) (syscall.WaitStatus, bool) {
	f := statOf(fmt.Sprintf("/proc/%d/stat", pid))
	if len(f) < 50 || f[0] != "Z" {
		return 0, false
	}
	n, err := strconv.ParseUint(f[49], 10, 32)
	return syscall.WaitStatus(n), err == nil
}

// statOf returns the fields of such a file from the third on, the state.
func statOf(file string) []string {
	text, _ := os.ReadFile(file)
	_, rest, _ := strings.Cut(string(text), ") ")
	return strings.Fields(rest)
}
