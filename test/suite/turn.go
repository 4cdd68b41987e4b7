// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"errors"
	"strings"
	"sync"
)

// passes runs them at once, so that one works while another waits. What each prints
// is shown in the order of the passes.
func (s *suite) passes(all []string) {
	var turns []*turn
	for _, pass := range all {
		o := &turn{to: s.out, ended: make(chan struct{})}
		t := newTally(pass, bufio.NewWriter(o), s.verbose)
		turns, s.tallies = append(turns, o), append(s.tallies, t)
		go func() {
			defer close(o.ended)
			s.pass(t, strings.Fields(pass))
			t.out.Flush()
		}()
	}
	for _, o := range turns {
		o.come()
		<-o.ended
	}
}

// turn keeps what a pass prints until those before it have ended.
type turn struct {
	to    *bufio.Writer
	ended chan struct{}

	mu   sync.Mutex
	kept []byte
	now  bool
}

func (o *turn) Write(text []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.now {
		o.kept = append(o.kept, text...)
		return len(text), nil
	}
	n, err := o.to.Write(text)
	return n, errors.Join(err, o.to.Flush())
}

// come shows what was kept, and has Write show what comes from now on. A writer that
// fails is no reason to stop: the exit code tells what became of the tests.
func (o *turn) come() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.now = true
	_, _ = o.to.Write(o.kept)
	_ = o.to.Flush()
}
