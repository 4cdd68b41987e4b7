// SPDX-License-Identifier: Apache-2.0

// Package stream has the command's standard output and standard error: whether
// writing worked, and a terminal's line that is drawn again.
package stream

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/term"

	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/exit"
)

// Sink is standard output. It remembers the first error: what was to be data
// and did not get out must not end in exit code 0.
type Sink struct {
	mu   sync.Mutex
	W    *bufio.Writer
	Live bool // a terminal: each line at once
	err  error
}

// NewSink writes to w, which may be the terminal of screen.
func NewSink(w io.Writer, screen *Screen) *Sink {
	s := new(Sink)
	if f, ok := w.(*os.File); ok {
		info, err := f.Stat()
		s.Live = err == nil && info.Mode()&os.ModeCharDevice != 0
	}
	if IsTerminal(w) {
		w = screen.Beside(w)
	}
	s.W = bufio.NewWriterSize(w, 64<<10) // a pipe's capacity on Linux
	return s
}

// Line writes text and a newline; now sends it off, for lines that are few.
func (s *Sink) Line(text []byte, now bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return
	}
	if _, s.err = s.W.Write(append(text, '\n')); s.err == nil && (now || s.Live) {
		s.err = s.W.Flush()
	}
}

// Flush sends off what waits, and returns the first error of all.
func (s *Sink) Flush() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = s.W.Flush()
	}
	return s.err
}

// Failed says that what was to be data did not get out, and returns the code for that.
func Failed(stderr io.Writer, err error) int {
	err = cmp.Or(errors.Unwrap(err), err) // the descriptor's name says little
	fmt.Fprintf(stderr, "fastlabel: writing to standard output: %v\n", err)
	return exit.Failed
}

// Screen is standard error, a writer for several goroutines: each write is
// whole. Where it is a terminal it may hold a line that is drawn again and
// again. That line is wiped before anything else is written to the terminal, so
// that no line is torn.
type Screen struct {
	mu    sync.Mutex
	W     io.Writer
	drawn string // the line that is there; "" if none is

	stopped atomic.Int64 // in ns: for how long the process was
}

// wiped takes the cursor to the first column, and what is behind it away
// (ECMA-48: CR, ED).
const wiped = "\r\x1b[J"

func (s *Screen) Write(p []byte) (int, error) { return s.Beside(s.W).Write(p) }

// Draw makes text the line, "" takes it away. text fits the terminal.
func (s *Screen) Draw(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch text {
	case s.drawn:
	case "":
		s.clear()
	default:
		// A terminal that is made narrower breaks the line in two, and keeps
		// the cursor at the character that it was on: only from the first one
		// are both reached.
		_, _ = io.WriteString(s.W, "\r"+text+"\x1b[J\r")
		s.drawn = text
	}
}

// clear takes the line away. mu is held.
func (s *Screen) clear() {
	if s.drawn != "" {
		_, _ = io.WriteString(s.W, wiped)
		s.drawn = ""
	}
}

// Leave takes the line away before the process ends, a child's too, unless
// another goroutine is writing, perhaps to a terminal that takes nothing.
func (s *Screen) Leave() {
	if s.mu.TryLock() {
		wipe(s.W)
		s.mu.Unlock()
	}
}

// Suspend takes the line away, as Leave does, and stops the process, as SIGTSTP does, by ^Z.
// It returns when the process goes on. Nothing is drawn in between.
func (s *Screen) Suspend() {
	for try := range 50 { // who draws now ends soon, but on a terminal that takes nothing
		if s.mu.TryLock() {
			defer s.mu.Unlock()
			wipe(s.W)
			s.drawn = ""
			break
		}
		time.Sleep(time.Duration(try) * time.Millisecond / 10)
	}
	runtime.LockOSThread() // a thread that sends itself a signal has it before it goes on
	defer runtime.UnlockOSThread()
	began := time.Now()
	// A shell that lets a process go on has put it into a process group that is not its session's.
	if session, _, _ := syscall.RawSyscall(syscall.SYS_GETSID, 0, 0, 0); int(session) != syscall.Getpgrp() {
		_ = syscall.Tgkill(os.Getpid(), syscall.Gettid(), syscall.SIGSTOP)
	}
	s.stopped.Add(int64(time.Since(began)))
}

// Stopped returns for how long Suspend stopped the process in all.
func (s *Screen) Stopped() time.Duration {
	if s == nil {
		return 0
	}
	return time.Duration(s.stopped.Load())
}

// wipe takes away what another process may have drawn.
func wipe(w io.Writer) {
	if IsTerminal(w) && !Dumb() {
		_, _ = io.WriteString(w, wiped)
	}
}

// Moment bounds the wait of a process that is to end for what it does not need.
const Moment = 50 * time.Millisecond

// LastWords prints a line, but waits no longer than a moment where stderr is not read.
func LastWords(text string) {
	said := make(chan bool, 1)
	go func() {
		wipe(os.Stderr)
		fmt.Fprintf(os.Stderr, "fastlabel: %s\n", text)
		said <- true
	}()
	select {
	case <-said:
	case <-time.After(Moment):
	}
}

// Dumb terminals know no sequences, and of one that has no name nothing is known.
func Dumb() bool { return os.Getenv("TERM") == "dumb" || os.Getenv("TERM") == "" }

// Beside is a writer to what may be the same terminal.
func (s *Screen) Beside(w io.Writer) io.Writer {
	return writerOf(func(p []byte) (int, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.clear()
		return w.Write(p)
	})
}

type writerOf func(p []byte) (int, error)

func (f writerOf) Write(p []byte) (int, error) { return f(p) }

// Columns returns the width of the terminal as it is now, and whether it is ours
// to draw on: not while another job has it. It returns 0 if there is no terminal.
func (s *Screen) Columns() (n int, ours bool) {
	f, ok := s.W.(*os.File)
	if !ok {
		return 0, false
	}
	n, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0, false
	}
	if n <= 0 {
		n = 80 // a terminal that does not know
	}
	// It is ours where the terminal is not the controlling one.
	var group int32
	_, _, e := syscall.Syscall(syscall.SYS_IOCTL, f.Fd(), syscall.TIOCGPGRP, uintptr(unsafe.Pointer(&group)))
	return n, e != 0 || int(group) == syscall.Getpgrp()
}

// IsTerminal reports whether w is a terminal.
func IsTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
