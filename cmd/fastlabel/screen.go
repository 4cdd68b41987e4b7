// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"os"
	"sync"

	"golang.org/x/term"
)

// screen is standard error, a writer for several goroutines: each write is
// whole. Where it is a terminal it may hold a line that is drawn again and
// again. That line is wiped before anything else is written to the terminal, so
// that no line is torn.
type screen struct {
	mu    sync.Mutex
	w     io.Writer
	drawn string // the line that is there; "" if none is
	outlet
}

// wiped takes the cursor to the first column, and what is behind it away
// (ECMA-48: CR, ED).
const wiped = "\r\x1b[J"

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clear()
	return s.to(s.w, p)
}

// draw makes text the line, "" takes it away. text fits the terminal.
func (s *screen) draw(text string) {
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
		_, _ = s.to(s.w, []byte("\r"+text+"\x1b[J\r"))
		s.drawn = text
	}
}

// clear takes the line away. mu is held.
func (s *screen) clear() {
	if s.drawn != "" {
		_, _ = s.to(s.w, []byte(wiped))
		s.drawn = ""
	}
}

// leave takes the line away before the process ends, a part's too, unless
// somebody is just writing, perhaps to a terminal that takes nothing.
func (s *screen) leave() {
	if s.mu.TryLock() {
		wipe(s.w)
		s.mu.Unlock()
	}
}

// wipe takes away what another process may have drawn.
func wipe(w io.Writer) {
	if isTerminal(w) && !dumb() {
		fmt.Fprint(w, wiped)
	}
}

// dumb terminals know no sequences, and of one that has no name nothing is known.
func dumb() bool { return os.Getenv("TERM") == "dumb" || os.Getenv("TERM") == "" }

// beside is a writer to what may be the same terminal.
func (s *screen) beside(w io.Writer) io.Writer { return neighbour{s, w} }

type neighbour struct {
	*screen
	w io.Writer
}

func (n neighbour) Write(p []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.clear()
	return n.to(n.w, p)
}

// columns returns the width of the terminal that w is, as it is now, and
// whether the terminal is ours to draw on: not while another job has it. It
// returns 0 if w is no terminal. A part asks about its parent's.
func columns(w io.Writer) (n int, ours bool) {
	f, ok := w.(*os.File)
	if !ok {
		return 0, false
	}
	if isPart() {
		var err error
		if f, err = parentsTerminal(); err != nil {
			return 0, false
		}
		defer f.Close() // a call that hangs must not hold it open
	}
	n, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0, false
	}
	if n <= 0 {
		n = 80 // a terminal that does not know
	}
	return n, inFront(f)
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
