// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func write(t *testing.T, file string, records []record) {
	t.Helper()
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	e := json.NewEncoder(f)
	for _, r := range records {
		if err := e.Encode(r); err != nil {
			t.Fatal(err)
		}
	}
}

func TestRecord(t *testing.T) {
	want := []record{
		{
			Time: "2030-01-02T03:04:05Z", Commit: "abc", Kernel: "6.13",
			cell:    cell{FS: "ext4", Size: "20G", Corpus: "flat", N: 10, State: "stray", Cold: true, Threads: 3},
			Entries: 11, Contestant: "fastlabel", Round: 4,
			took: took{Wall: 1.5, User: 0.25, Sys: 0.5, MaxRSS: 4096, Sleeps: 7, Foreign: 0.125, Calls: 5},
		},
		{},
	}
	file := filepath.Join(t.TempDir(), "results")
	write(t, file, want)
	got, err := readRecords([]string{file, file})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got, append(want, want...)) {
		t.Errorf("%+v, want twice %+v", got, want)
	}

	if err := os.WriteFile(file, []byte("{}\n{\"wall\":\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readRecords([]string{file}); err == nil || !strings.Contains(err.Error(), "results:2:") {
		t.Errorf("half a line: %v", err)
	}
}
