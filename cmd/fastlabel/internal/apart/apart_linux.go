// SPDX-License-Identifier: Apache-2.0

// Package apart does the work in a child process, which can be left behind.
//
// A thread whose call never returns keeps its process from ending, by any signal,
// and its waiter waits for ever. So what may meet such a call is done in a child,
// the part. This process does not wait for the child's end, but for what it says on
// a socket: its exit code, after all of its output.
//
// Both get the terminal's signals; those sent to the parent are passed on too. The
// second signal ends the parent, and with it, by SIGKILL, the part.
package apart

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
	"syscall"
	"time"

	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/exit"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/stream"
)

// partEnv holds the parent's process id and the part's end of the socket.
const partEnv = "FASTLABEL_PART_OF"

const (
	// Grace is how long after the end of its context the part is waited for
	// while it does nothing: the engine gives up after half a second.
	Grace = 800 * time.Millisecond
	// partLook is how often it is looked at in the last quarter of that.
	partLook = Grace / 16
	// partWork is how long it may work on without a word.
	partWork = 30 * time.Second
)

// IsPart tells whether this process is the part of its parent.
func IsPart() bool { return partSocket() >= 0 }

func partSocket() int {
	parent, fd, _ := strings.Cut(os.Getenv(partEnv), " ")
	if n, err := strconv.Atoi(fd); err == nil && parent == strconv.Itoa(os.Getppid()) {
		return n
	}
	return -1
}

// Begin gives the part its parent's name. SIGUSR1 to both, as by that name, is answered
// once: by way of the parent.
func Begin(asked chan<- os.Signal) {
	signal.Ignore(syscall.SIGUSR1)
	_ = os.WriteFile("/proc/self/comm", []byte("fastlabel"), 0)
	go heedParent(asked)
}

// heedParent passes on what the parent asks, a byte each, and kills the part when its
// parent is gone, where the kernel does not: it forgets the death signal of a program
// that has file capabilities.
func heedParent(asked chan<- os.Signal) {
	for {
		n, err := syscall.Read(partSocket(), make([]byte, 1))
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

// Leave is the last act of the part.
func Leave(code int) {
	socket := partSocket()
	for _, f := range []*os.File{os.Stdin, os.Stdout, os.Stderr} { // what hangs would hold them open
		_ = f.Close()
	}
	_, _ = syscall.Write(socket, []byte{byte(code)})
	os.Exit(code)
}

// Run does the work in a part. It is not done if there can be none.
func Run(ctx context.Context) (code int, done bool) {
	p, err := startPart()
	if err != nil { // as well as can be, here
		return 0, false
	}
	return p.wait(ctx), true
}

// part is the child, as its parent knows it.
type part struct {
	process *os.Process
	socket  *os.File
	stdout  *passage
	stderr  *passage // may be stdout
	moved   int64    // bytes of both, when it was last asked
	ticks   uint64   // of processors' time, likewise
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

// wait returns the code that the run ends with.
func (p *part) wait(ctx context.Context) (code int) {
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
	signal.Notify(asked, syscall.SIGUSR1) // by who wants to know how far it is
	end := ctx.Done()
	var late <-chan time.Time
	var passed <-chan bool
	look := time.NewTicker(time.Second)
	defer look.Stop()
	told, wasDead, idle, stop := false, false, 0, time.Time{}
	for {
		select {
		case code = <-said:
			if code < 0 {
				return p.fell(<-ended)
			}
			told, said, passed = true, nil, p.passed()
		case <-passed:
			if p.stdout.err != nil {
				code = exit.Worse(code, stream.Failed(os.Stderr, p.stdout.err))
			}
			select { // so that it is no orphan, if it can end
			case <-ended:
			case <-time.After(50 * time.Millisecond):
			}
			return code
		case <-look.C:
			status, dead := leaderDead(p.process.Pid)
			if dead && wasDead && !told { // its last word would have come
				return p.fell(status)
			}
			wasDead = dead
		case <-asked:
			_, _ = p.socket.Write([]byte{1}) // or it is over
		case <-end:
			var s exit.Signal
			if errors.As(context.Cause(ctx), &s) {
				_ = p.process.Signal(s.Sig)
			}
			p.moves()
			p.works()
			end, late, stop = nil, time.After(Grace-4*partLook), time.Now().Add(partWork)
		case now := <-late:
			if idle++; p.moves() || now.Before(stop) && p.works() {
				idle = 0
			}
			if idle < 4 {
				late = time.After(partLook)
				continue
			}
			code, reason := exit.Of(ctx)
			lastWords(func() {
				stream.Wipe(os.Stderr)
				if p.stdout.busy.Load() || p.stderr.busy.Load() {
					fmt.Fprintf(os.Stderr, "fastlabel: %s; what it prints is not read\n", reason)
				} else {
					fmt.Fprintf(os.Stderr, "fastlabel: %s; process %d does not end\n", reason, p.process.Pid)
				}
			})
			return code
		}
	}
}

// passed says when all that the part has written is passed on.
func (p *part) passed() <-chan bool {
	all := make(chan bool, 1)
	go func() {
		<-p.stdout.done
		<-p.stderr.done
		all <- true
	}()
	return all
}

// moves tells whether something was passed on since it was last asked.
func (p *part) moves() bool {
	before := p.moved
	p.moved = p.stdout.moved.Load() + p.stderr.moved.Load()
	return p.moved != before
}

// works tells whether the part used a processor since it was last asked, or waits
// for one: it does not hang then (proc_pid_stat(5)).
func (p *part) works() bool {
	before, sum := p.ticks, uint64(0)
	for i, field := range statOf(fmt.Sprintf("/proc/%d/stat", p.process.Pid)) {
		if i == 11 || i == 12 { // utime, stime
			n, _ := strconv.ParseUint(field, 10, 64)
			sum += n
		}
	}
	if p.ticks = sum; sum > before+1 {
		return true
	}
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", p.process.Pid))
	return slices.ContainsFunc(tasks, func(file string) bool {
		f := statOf(file)
		return len(f) > 0 && f[0] == "R"
	})
}

// lastWords says something, for which it takes no time where stderr is not read.
func lastWords(say func()) {
	said := make(chan bool, 1)
	go func() {
		say()
		said <- true
	}()
	select {
	case <-said:
	case <-time.After(partLook):
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
		lastWords(func() {
			stream.Wipe(os.Stderr)
			fmt.Fprintf(os.Stderr, "fastlabel: process %d was ended by a signal: %v\n", p.process.Pid, status.Signal())
		})
		return 128 + int(status.Signal())
	}
	if code := status.ExitStatus(); code != exit.Usage { // which would be Go's own
		return cmp.Or(code, exit.Failed)
	}
	return exit.Failed
}

// leaderDead tells whether a child has ended but for threads that hang, and
// how (proc_pid_stat(5)).
func leaderDead(pid int) (syscall.WaitStatus, bool) {
	f := statOf(fmt.Sprintf("/proc/%d/stat", pid))
	if len(f) < 50 || f[0] != "Z" {
		return 0, false
	}
	n, err := strconv.ParseUint(f[49], 10, 32)
	return syscall.WaitStatus(n), err == nil
}

// statOf has the fields of such a file from the third on, the state.
func statOf(file string) []string {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	return strings.Fields(rest)
}
