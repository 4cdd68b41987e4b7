// SPDX-License-Identifier: Apache-2.0

package avc

import (
	"slices"
	"testing"
)

// shown is how many denials a failure shows, the last ones. More are seldom
// read.
const shown = 40

// Log is what was refused since a test began to watch.
type Log struct {
	socket *socket
	lost   uint32 // messages that the kernel lost before
	all    []Denial
	seen   int // of all, asked about
}

// Watch collects what is refused from now until the end of the test, in the
// whole machine, and shows it if the test fails.
func Watch(t testing.TB) *Log {
	t.Helper()
	s, err := dial()
	if err != nil {
		t.Fatalf("avc: %v", err)
	}
	l := &Log{socket: s}
	if _, l.lost, err = s.take(); err != nil {
		t.Fatalf("avc: %v", err)
	}
	t.Cleanup(func() {
		l.take(t)
		if t.Failed() {
			l.show(t)
		}
		if err := s.close(); err != nil {
			t.Errorf("avc: %v", err)
		}
	})
	return l
}

func (l *Log) take(t testing.TB) {
	t.Helper()
	more, lost, err := l.socket.take()
	if err != nil {
		t.Errorf("avc: %v", err)
	} else if lost != l.lost {
		t.Errorf("avc: the kernel lost %d messages", lost-l.lost)
		l.lost = lost
	}
	l.all = append(l.all, more...)
}

func (l *Log) show(t testing.TB) {
	t.Helper()
	t.Logf("%d denials", len(l.all))
	for _, d := range l.all[max(0, len(l.all)-shown):] {
		t.Log(d.Text)
	}
}

// Take gives what was refused since the last Take, Has or Hasnt.
func (l *Log) Take(t testing.TB) []Denial {
	t.Helper()
	l.take(t)
	fresh := l.all[l.seen:]
	l.seen = len(l.all)
	return fresh
}

// Has fails the test unless something like each of wants was refused since the
// last Take, Has or Hasnt. What is empty in them may be anything.
func (l *Log) Has(t testing.TB, wants ...Denial) {
	t.Helper()
	fresh := l.Take(t)
	for _, want := range wants {
		if !slices.ContainsFunc(fresh, func(d Denial) bool { return d.Like(want) }) {
			t.Errorf("none of %d denials is like %+v", len(fresh), want)
		}
	}
}

// Hasnt fails the test if anything like unwanted was refused since then.
func (l *Log) Hasnt(t testing.TB, unwanted Denial) {
	t.Helper()
	for _, d := range l.Take(t) {
		if d.Like(unwanted) {
			t.Errorf("refused, and should not be: %s", d.Text)
		}
	}
}
