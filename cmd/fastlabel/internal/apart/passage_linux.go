// SPDX-License-Identifier: Apache-2.0

package apart

import (
	"os"
	"sync/atomic"
)

// passage passes on what the part writes.
type passage struct {
	from, to *os.File
	busy     atomic.Bool  // to does not take it at the moment
	moved    atomic.Int64 // bytes
	err      error        // the first; what comes after it is dropped
	done     chan struct{}
}

// passTo begins one, and returns the end that the part writes to.
func passTo(to *os.File) (*passage, *os.File, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	p := &passage{from: r, to: to, done: make(chan struct{})}
	go p.copy()
	return p, w, nil
}

func (p *passage) copy() {
	defer close(p.done)
	buf := make([]byte, 64<<10) // a pipe's capacity
	for {
		n, err := p.from.Read(buf)
		for rest := buf[:n]; len(rest) > 0 && p.err == nil; {
			some := rest[:min(len(rest), 16<<10)] // a slow reader is seen to read
			p.busy.Store(true)
			_, p.err = p.to.Write(some)
			p.busy.Store(false)
			p.moved.Add(int64(len(some)))
			rest = rest[len(some):]
		}
		if err != nil {
			return
		}
	}
}

func sameFile(a, b *os.File) bool {
	x, err := a.Stat()
	y, err2 := b.Stat()
	return err == nil && err2 == nil && os.SameFile(x, y)
}
