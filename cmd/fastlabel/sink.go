// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"io"
	"os"
	"sync"
)

// sink is standard output. It remembers the first error: what was to be data
// and did not get out must not end in exit code 0.
type sink struct {
	mu   sync.Mutex
	w    *bufio.Writer
	live bool // a terminal, or a parent that passes it on: each line at once
	err  error
}

func newSink(w io.Writer) *sink {
	s := &sink{w: bufio.NewWriterSize(w, 64<<10)} // a pipe's capacity on Linux
	if f, ok := w.(*os.File); ok {
		info, err := f.Stat()
		s.live = isPart() || err == nil && info.Mode()&os.ModeCharDevice != 0
	}
	return s
}

// line writes text and a newline; now sends it off, for lines that are few.
func (s *sink) line(text []byte, now bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return
	}
	if _, s.err = s.w.Write(append(text, '\n')); s.err == nil && (now || s.live) {
		s.err = s.w.Flush()
	}
}

// flush sends off what waits, and returns the first error of all.
func (s *sink) flush() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = s.w.Flush()
	}
	return s.err
}
