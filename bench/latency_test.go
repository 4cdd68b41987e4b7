// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestLatency(t *testing.T) {
	fastlabel := program(t)
	dir := t.TempDir()
	out := filepath.Join(t.TempDir(), "results")
	var told bytes.Buffer
	measure := []string{"-o", out, "-fastlabel", fastlabel, "-in", dir, "-n", "2000", "-mib", "4", "-rounds", "1", "-shorter", "40"}
	for range 2 { // the second finds the tree of the first
		told.Reset()
		if err := latency(&told, measure); err != nil {
			t.Fatal(err)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 2 {
		t.Errorf("in %s: %v, %v", dir, left, err)
	}
	if n := strings.Count(told.String(), "| 2 |"); n != len(beside) {
		t.Errorf("%d of %d:\n%s", n, len(beside), &told)
	}
	if err := latency(&told, []string{"-o", out, "-fastlabel", "/bin/false", "-in", dir, "-rounds", "1", "-mib", "1", "-shorter", "40"}); err == nil {
		t.Error("a run that failed is none")
	}
}

// The table has medians.
func TestTellWaits(t *testing.T) {
	file := filepath.Join(t.TempDir(), "results")
	text := `{"beside":"fastlabel","p99":1,"median":0.5,"late99":4,"max":7,"seen":10,"seconds":2}
{"beside":"fastlabel","p99":9,"median":0.25,"late99":5,"max":8,"seen":30,"seconds":2}
{"beside":"fastlabel","p99":2,"median":0.75,"late99":6,"max":9,"seen":20,"seconds":2}
`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := tellWaits(&b, file); err != nil || !strings.HasSuffix(b.String(), "| fastlabel | 3 | 0.50 | 2.00 | 5.00 | 8.0 | 10 |\n") {
		t.Errorf("%v\n%s", err, &b)
	}
	if err := os.WriteFile(file, []byte(text[:50]), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := tellWaits(&b, file); err == nil {
		t.Error("half a line is none")
	}
}
