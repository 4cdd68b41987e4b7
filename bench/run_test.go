// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fastlabel/fastlabel/test/treetest"
)

func TestMain(m *testing.M) { os.Exit(treetest.Main(m)) }

// TestPlans checks that all that plans name exists: an hour into a run is late
// to learn of it.
func TestPlans(t *testing.T) {
	for name, sweeps := range plans {
		for _, s := range sweeps {
			if len(s.fs)*len(s.corpora)*len(s.n)*len(s.states)*len(s.threads)*len(s.with)*s.rounds == 0 || s.size == "" {
				t.Errorf("%s: something has nothing in it: %+v", name, s)
			}
			for _, who := range s.with {
				if _, _, err := find(who); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
			for _, corpus := range s.corpora {
				if _, ok := corpora[corpus]; !ok {
					t.Errorf("%s: no corpus %s", name, corpus)
				}
			}
			for _, fs := range s.fs {
				if mounts[fs] == "" {
					t.Errorf("%s: no filesystem %s", name, fs)
				}
			}
			for _, state := range s.states {
				if !slices.Contains(states, state) {
					t.Errorf("%s: no state %s", name, state)
				}
			}
		}
	}
	if _, _, err := find("nobody"); err == nil {
		t.Error("found nobody")
	}
	for _, args := range [][]string{{"-plan", "none"}, {"-n", "many"}} {
		if err := runPlan(args); err == nil {
			t.Errorf("%q is taken", args)
		}
	}
}

// list is all names beneath a directory, directories with a slash behind.
func list(t *testing.T, root string) []string {
	t.Helper()
	var names []string
	err := fs.WalkDir(os.DirFS(root), ".", func(path string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() {
			path += "/"
		}
		names = append(names, path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names[1:]
}

// TestPlant: a corpus has as many entries as it says, about n, and is the same again.
func TestPlant(t *testing.T) {
	for corpus := range corpora {
		for _, n := range []int{0, 1, 10, 1000} {
			a, b := t.TempDir(), t.TempDir()
			count, err := plant(a, corpus, n)
			if err != nil {
				t.Fatal(err)
			}
			first := list(t, a)
			if len(first) != count || count < n || count > n+1 {
				t.Errorf("%s %d: says %d, made %d", corpus, n, count, len(first))
			}
			if _, err := plant(b, corpus, n); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(first, list(t, b)) {
				t.Errorf("%s %d: another tree the second time", corpus, n)
			}
			if _, err := plant(a, corpus, n); err == nil && n == 1000 {
				t.Errorf("%s %d: planted twice in one place", corpus, n)
			}
		}
	}
}

// program builds fastlabel.
func program(t *testing.T) string {
	t.Helper()
	treetest.Need(t, "root", "gcc", "go", "tmpfs", "setfattr", "setfiles")
	path := filepath.Join(t.TempDir(), "fastlabel")
	if err := run("go", "build", "-C", "..", "-o", path, "./cmd/fastlabel"); err != nil {
		t.Fatal(err)
	}
	return path
}

// measured runs one plan and returns its file and its results.
func measured(t *testing.T, fastlabel string, s sweep) (string, []record, error) {
	t.Helper()
	dir, file := t.TempDir(), filepath.Join(t.TempDir(), "results")
	t.Setenv("TMPDIR", dir)
	err := measureAll(t.Context(), []sweep{s}, fastlabel, file)
	if left := list(t, dir); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	text, readErr := os.ReadFile(file)
	if readErr != nil {
		t.Fatal(readErr)
	}
	var records []record
	for d := json.NewDecoder(bytes.NewReader(text)); ; {
		var r record
		if err := d.Decode(&r); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		records = append(records, r)
	}
	return file, records, err
}

// TestRun: every contestant labels, in every state, and is in the table and in the charts.
func TestRun(t *testing.T) {
	fastlabel := program(t)
	s := sweep{
		fs: []string{"tmpfs"}, corpora: []string{"files", "realistic"}, size: "1G", n: []int{30, 300}, states: states, threads: []int{2},
		with: []string{"fastlabel@" + fastlabel}, rounds: 2,
	}
	for name := range contestants {
		s.with = append(s.with, name)
	}
	file, records, err := measured(t, fastlabel, s)
	if err != nil {
		t.Fatal(err)
	}
	if want := 2 * 2 * 3 * 2 * len(s.with); len(records) != want { // corpora, sizes, states, rounds
		t.Errorf("%d results, want %d", len(records), want)
	}
	for _, r := range records {
		if r.Wall <= 0 || r.User+r.Sys <= 0 || r.MaxRSS <= 0 != (contestants[r.Contestant].call != nil) || r.Entries != r.N+1 || r.FS != "tmpfs" || r.Requests != 0 {
			t.Errorf("%+v", r)
		}
	}
	var out bytes.Buffer
	if err := table(&out, []string{file}); err != nil {
		t.Fatal(err)
	}
	for name := range contestants {
		if !strings.Contains(out.String(), "tmpfs files 300 wrong -T 2      "+name+" ") {
			t.Errorf("no %s in\n%s", name, &out)
		}
	}
	charts := filepath.Join(t.TempDir(), "charts")
	if err := plot([]string{charts, file}); err != nil {
		t.Fatal(err)
	}
	if got := list(t, charts); len(got) != 2*3 || !slices.Contains(got, "tmpfs-files-stray-T2.svg") {
		t.Error(got)
	}
}

// TestRunCold: who reads ahead on a cold ext4 makes fewer requests than the floor; the
// control, fastlabel with a number of workers, about as many, and is over the limit.
func TestRunCold(t *testing.T) {
	treetest.Need(t, "ext4")
	s := sweep{
		fs: []string{"ext4"}, corpora: []string{"realistic"}, size: "2G", n: []int{10_000}, states: []string{"right"}, threads: []int{2}, cold: true,
		with: []string{"fastlabel", "floor-dir"}, rounds: 1, limit: 0.3,
	}
	_, records, err := measured(t, program(t), s)
	if err == nil || !strings.HasPrefix(err.Error(), "ext4 realistic 10000 right cold -T 2: over the limit in 3 tries: ") || !strings.HasSuffix(err.Error(), " of the floor's requests, not 0.30") {
		t.Error(err)
	}
	if len(records) != 2*tries {
		t.Errorf("%d results", len(records))
	}
	for _, r := range records {
		if r.Requests < 100 {
			t.Errorf("%+v", r)
		}
	}
}

// TestRunCalls: the volumes in a tree are labelled by a call each, all at once.
func TestRunCalls(t *testing.T) {
	s := sweep{
		fs: []string{"tmpfs"}, corpora: []string{"volumes"}, size: "1G", n: []int{60}, states: []string{"wrong", "right"}, threads: []int{7},
		with: calls, rounds: 2,
	}
	if _, records, err := measured(t, program(t), s); err != nil || len(records) != 2*2*2 {
		t.Errorf("%v; %d results", err, len(records))
	}
}

// TestRunCaught is the control: a contestant that does less than it says, fails, or is
// far slower than the floor is named.
func TestRunCaught(t *testing.T) {
	fastlabel := program(t)
	for _, c := range []struct {
		script, want string
		runs         int
	}{
		{`exec setfattr -n security.selinux -v "$5" "$6"`, "not all labelled", 0},
		{`find "$6" -mindepth 1 -exec setfattr -h -n security.selinux -v "$5" {} +`, "the root has", 0},
		{"echo this is why >&2; exit 3", "exit 3, signal -1: this is why", 0},
		{`for i in 1 2 3 4 5 6 7 8 9; do ` + fastlabel + ` "$@"; done`, "tmpfs flat 20 wrong -T 2: over the limit in 3 tries: ", 2 * tries},
	} {
		fake := filepath.Join(t.TempDir(), "fake")
		if err := os.WriteFile(fake, []byte("#!/bin/sh\n"+c.script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		s := sweep{
			fs: []string{"tmpfs"}, corpora: []string{"flat"}, size: "1G", n: []int{20}, states: []string{"wrong"}, threads: []int{2},
			with: []string{"fastlabel", "floor-dir"}, rounds: 1, limit: 2,
		}
		if _, records, err := measured(t, fake, s); err == nil || !strings.Contains(err.Error(), c.want) || len(records) != c.runs {
			t.Errorf("%v, want %q; %d results", err, c.want, len(records))
		}
	}
}
