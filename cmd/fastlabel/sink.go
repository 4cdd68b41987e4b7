// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"io"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// sink is standard output. It remembers the first error: what was to be data
// and did not get out must not end in exit code 0.
type sink struct {
	mu   sync.Mutex
	w    *bufio.Writer
	live bool // a terminal, or a parent that passes it on: each line at once
	err  error
	outlet
}

// outlet knows since when a write has been under way that nobody reads.
type outlet struct{ since atomic.Int64 } // in ns; 0: none is

// to writes p in pieces, so that a slow reader is seen to read.
func (o *outlet) to(w io.Writer, p []byte) (n int, err error) {
	for n < len(p) && err == nil {
		piece := p[n:min(len(p), n+16<<10)]
		var some int
		o.since.Store(time.Now().UnixNano())
		if some, err = w.Write(piece); some < len(piece) && err == nil {
			err = io.ErrShortWrite
		}
		n += some
	}
	o.since.Store(0)
	return n, err
}

// stuck tells whether nothing of a write was read for so long.
func (o *outlet) stuck(long time.Duration) bool {
	since := o.since.Load()
	return since != 0 && time.Now().UnixNano()-since > int64(long)
}

// unread calls end when ctx has ended and a reader of the output takes nothing: the
// run cannot end in good order then. The function that it returns ends the watch.
func unread(ctx context.Context, end func(), outlets ...*outlet) (over func()) {
	ended := make(chan struct{})
	go func() {
		select {
		case <-ended:
			return
		case <-ctx.Done():
		}
		tick := time.NewTicker(readerGrace / 16)
		defer tick.Stop()
		for {
			select {
			case <-ended:
				return
			case <-tick.C:
				if slices.ContainsFunc(outlets, func(o *outlet) bool { return o.stuck(readerGrace) }) {
					end()
					return
				}
			}
		}
	}()
	return func() { close(ended) }
}

// readerGrace is how long a reader may take for a piece when the run is to end.
const readerGrace = 800 * time.Millisecond

func newSink(w io.Writer) *sink {
	s := new(sink)
	s.w = bufio.NewWriterSize(writerOf(func(p []byte) (int, error) { return s.to(w, p) }), 64<<10) // a pipe's capacity on Linux
	if f, ok := w.(*os.File); ok {
		info, err := f.Stat()
		s.live = isPart() || err == nil && info.Mode()&os.ModeCharDevice != 0
	}
	return s
}

type writerOf func(p []byte) (int, error)

func (f writerOf) Write(p []byte) (int, error) { return f(p) }

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
