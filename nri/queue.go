// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"io"
	"sync/atomic"
	"time"
)

// queued bounds the lines that wait for a reader of the log.
const queued = 1024

// queue writes lines in their order from a goroutine of its own: a node on which nobody
// reads the log, as on a full disk, is answered all the same. Lines for which there is no
// room are counted, and the next that is written says so.
type queue struct {
	lines chan entry
	lost  atomic.Int64
}

// entry is a line, or what is closed when those before it are written.
type entry struct {
	line    []byte
	written chan struct{}
}

func newQueue(w io.Writer) *queue {
	q := &queue{lines: make(chan entry, queued)}
	go func() {
		for e := range q.lines {
			if n := q.lost.Swap(0); n > 0 {
				fmt.Fprintf(w, "{\"level\":\"warn\",\"ts\":%q,\"msg\":\"lines were lost\",\"lines\":%d}\n", time.Now().Format(time.RFC3339Nano), n)
			}
			if e.written != nil {
				close(e.written)
				continue
			}
			_, _ = w.Write(e.line) // there is nobody to tell
		}
	}()
	return q
}

func (q *queue) Write(line []byte) (int, error) {
	select {
	case q.lines <- entry{line: bytes.Clone(line)}:
	default:
		q.lost.Add(1)
	}
	return len(line), nil
}

// flush waits until all that was queued is written, for so long at most.
func (q *queue) flush(most time.Duration) {
	end, written := time.After(most), make(chan struct{})
	select {
	case q.lines <- entry{written: written}:
	case <-end:
		return
	}
	select {
	case <-written:
	case <-end:
	}
}
