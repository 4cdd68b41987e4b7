// SPDX-License-Identifier: Apache-2.0

package stream

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/exit"
)

// Sink is standard output. It remembers the first error: what was to be data
// and did not get out must not end in exit code 0.
type Sink struct {
	mu   sync.Mutex
	W    *bufio.Writer
	Live bool // a terminal, or a parent that passes it on: each line at once
	err  error
	Outlet
}

// Outlet knows since when a write has been under way that has no reader.
type Outlet struct{ since atomic.Int64 } // in ns; 0: none is

// to writes p in pieces, so that a slow reader is seen to read.
func (o *Outlet) to(w io.Writer, p []byte) (n int, err error) {
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

// stuck reports whether nothing of a write was read for so long.
func (o *Outlet) stuck(long time.Duration) bool {
	since := o.since.Load()
	return since != 0 && time.Now().UnixNano()-since > int64(long)
}

// Unread calls end when ctx has ended and a reader of the output takes nothing: the
// run cannot end in good order then. The function that it returns ends the watch.
func Unread(ctx context.Context, end func(), outlets ...*Outlet) (over func()) {
	watch, ended := context.WithCancel(context.Background())
	stop := context.AfterFunc(ctx, func() {
		for watch.Err() == nil {
			if slices.ContainsFunc(outlets, func(o *Outlet) bool { return o.stuck(readerGrace) }) {
				end()
				return
			}
			time.Sleep(readerGrace / 16)
		}
	})
	return func() { stop(); ended() }
}

// readerGrace is how long a reader may take for a piece when the run is to end.
const readerGrace = 800 * time.Millisecond

func NewSink(w io.Writer) *Sink {
	s := new(Sink)
	s.W = bufio.NewWriterSize(writerOf(func(p []byte) (int, error) { return s.to(w, p) }), 64<<10) // a pipe's capacity on Linux
	if f, ok := w.(*os.File); ok {
		info, err := f.Stat()
		s.Live = err == nil && info.Mode()&os.ModeCharDevice != 0
	}
	return s
}

type writerOf func(p []byte) (int, error)

func (f writerOf) Write(p []byte) (int, error) { return f(p) }

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
