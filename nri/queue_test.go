// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"encoding/json"
	"os"
	"testing"
	"time"

	"github.com/fastlabel/fastlabel/test/treetest"
)

// TestLogUnread: who logs is not held up by a log that nobody reads; each line is read
// later, or counted.
func TestLogUnread(t *testing.T) {
	r, w, err := os.Pipe()
	treetest.Must(t, err)
	defer r.Close()
	q := newQueue(w)
	log, err := newLogger(q, "info")
	treetest.Must(t, err)
	const lines = 100_000 // a pipe has 64 KiB
	for n := range lines {
		log.Info("request", "n", n)
	}
	q.flush(0) // it ends though nothing is written
	go func() {
		q.flush(time.Hour)
		w.Close()
	}()
	last, whole, lost := -1, 0, 0
	for s := bufio.NewScanner(r); s.Scan(); {
		var line struct {
			Msg      string
			N, Lines int
		}
		if err := json.Unmarshal(s.Bytes(), &line); err != nil {
			t.Fatalf("%q: %v", s.Text(), err)
		}
		switch {
		case line.Msg == "lines were lost":
			lost += line.Lines
		case line.N <= last:
			t.Fatalf("line %d after %d", line.N, last)
		default:
			last = line.N
			whole++
		}
	}
	if whole < queued || lost == 0 || whole+lost != lines {
		t.Errorf("%d lines written, %d lost, of %d", whole, lost, lines)
	}
}
