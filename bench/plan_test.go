// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"strings"
	"testing"
)

// TestPlans checks that all that plans name exists: an hour into a run is late
// to learn of it.
func TestPlans(t *testing.T) {
	for name, sweeps := range plans {
		for _, s := range sweeps {
			cells := s.cells()
			if want := len(s.fs) * len(s.corpora) * len(s.states) * len(s.n) * len(s.threads) * max(1, len(s.limits)) * max(1, len(s.beside)); len(cells) != want || want == 0 {
				t.Errorf("%s: %d cells, want %d", name, len(cells), want)
			}
			if s.rounds < 1 || len(s.with) == 0 {
				t.Errorf("%s: %d rounds with %v", name, s.rounds, s.with)
			}
			for _, who := range s.with {
				if _, err := find(who); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
			seen := map[cell]bool{}
			for i, c := range cells {
				if seen[c] {
					t.Errorf("%s: %s twice", name, c)
				}
				seen[c] = true
				if i > 0 && !c.shares(cells[i-1]) && slices.ContainsFunc(cells[:i-1], c.shares) {
					t.Errorf("%s: %s comes when its tree is gone", name, c)
				}
				if _, _, err := c.beside(); err != nil {
					t.Errorf("%s: %v", name, err)
				}
				if corpora[c.Corpus] == nil {
					t.Errorf("%s: no corpus %s", name, c.Corpus)
				}
				if !slices.Contains([]string{"wrong", "right", "stray"}, c.State) {
					t.Errorf("%s: no state %s", name, c.State)
				}
				if makers[c.FS] == nil && c.FS != "tmpfs" && c.FS != "slowfs" {
					t.Errorf("%s: no filesystem %s", name, c.FS)
				}
				if makers[c.FS] != nil && c.Size == "" {
					t.Errorf("%s: %s without a size", name, c.FS)
				}
			}
		}
	}
}

func TestNarrow(t *testing.T) {
	s := plans["quick"][0]
	only := map[string]*string{}
	for name, value := range map[string]string{"fs": "xfs", "corpus": "", "state": "stray", "n": "7,8", "threads": "", "with": "chcon", "size": "1G", "limits": "", "beside": "dirty-7"} {
		only[name] = &value
	}
	if err := s.narrow(only, 3, true); err != nil {
		t.Fatal(err)
	}
	want := []cell{
		{"xfs", "1G", "flat", 7, "stray", true, 2, 0, "dirty-7"},
		{"xfs", "1G", "flat", 8, "stray", true, 2, 0, "dirty-7"},
		{"xfs", "1G", "realistic", 7, "stray", true, 2, 0, "dirty-7"},
		{"xfs", "1G", "realistic", 8, "stray", true, 2, 0, "dirty-7"},
	}
	if got := s.cells(); !slices.Equal(got, want) || s.rounds != 3 || !slices.Equal(s.with, []string{"chcon"}) {
		t.Errorf("%v, %d rounds with %v", got, s.rounds, s.with)
	}
	*only["n"] = "many"
	if err := s.narrow(only, 0, false); err == nil {
		t.Error("took many for a number")
	}
	if _, err := find("nobody"); err == nil {
		t.Error("found nobody")
	}
}

// TestThreads: NAME-N has N threads, whatever the cell has; not a program whose name ends so.
func TestThreads(t *testing.T) {
	for name, want := range map[string]string{"floor-dir": "-t 2 ", "floor-dir-8": "-t 8 ", "fastlabel-16": "-T 16 ", "fastlabel@a-7": "-T 2 "} {
		c, err := find(name)
		if err != nil || c.name != name {
			t.Fatalf("%s: %q, %v", name, c.name, err)
		}
		if argv := strings.Join(c.argv(&binaries{}, cell{Threads: 2}, "label", "path"), " "); !strings.Contains(argv, want) {
			t.Errorf("%s: %s", name, argv)
		}
	}
}
