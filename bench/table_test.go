// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestQuantile(t *testing.T) {
	for _, c := range []struct {
		values     []float64
		part, want float64
	}{
		{[]float64{3, 1, 2}, 0.5, 2},
		{[]float64{4, 1, 3, 2}, 0.5, 2.5},
		{[]float64{5, 4, 3, 2, 1}, 0.25, 2},
		{[]float64{5, 4, 3, 2, 1}, 0.75, 4},
		{[]float64{7}, 0.25, 7},
		{[]float64{1, 2}, 1, 2},
	} {
		if got := quantile(c.values, c.part); got != c.want {
			t.Errorf("quantile(%v, %v) = %v, want %v", c.values, c.part, got, c.want)
		}
	}
	if got := geometric([]float64{0.5, 2, 8}); math.Abs(got-2) > 1e-12 {
		t.Errorf("%v, want 2", got)
	}
}

// runs are what a contestant took in a cell.
func runs(c cell, contestant string, walls ...float64) []record {
	var list []record
	for _, wall := range walls {
		list = append(list, record{cell: c, Entries: c.N, Contestant: contestant, took: took{Wall: wall}})
	}
	return list
}

func TestBase(t *testing.T) {
	wrong := cell{FS: "ext4", Corpus: "flat", N: 10, State: "wrong", Threads: 2}
	four, auto, elsewhere := wrong, wrong, wrong
	four.Threads, auto.Threads, elsewhere.FS = 4, 0, "xfs"
	b := board{}
	add := func(c cell, contestant string, walls ...float64) {
		for _, r := range runs(c, contestant, walls...) {
			b.add(r)
		}
	}
	for _, c := range []cell{wrong, four, auto} {
		add(c, "floor-dir", 1, 2, 3)
		add(c, "floor-inode", 5, 4, 3)
		add(c, "floor-inode-fchdir", 9)
		add(c, "go-selinux-call", 5, 6, 7)
	}
	add(four, "floor-dir", 0.5, 0.5, 0.5, 0.5)
	for _, c := range []struct {
		cell             cell
		contestant, base string
		want             float64
	}{
		{wrong, "fastlabel", "", 2},
		{wrong, "fastlabel@b", "", 2},
		{wrong, "fastlabel", "floor-inode", 4},
		{wrong, "fastlabel-fchdir", "", 9},
		{four, "fastlabel", "", 0.5},
		{auto, "fastlabel", "", 0.5}, // of four threads
		{auto, "fastlabel", "floor-dir", 2},
		{wrong, "dropin-call", "", 6},
	} {
		if got := b.base(c.cell, c.contestant, c.base); got != c.want {
			t.Errorf("%s, %s: %v, want %v", c.cell, c.contestant, got, c.want)
		}
	}
	if got := b.base(elsewhere, "fastlabel", ""); !math.IsNaN(got) {
		t.Errorf("a floor of %v where none ran", got)
	}
}

func TestTable(t *testing.T) {
	wrong := cell{FS: "ext4", Corpus: "flat", N: 10, State: "wrong", Threads: 2}
	right := wrong
	right.State, right.Cold = "right", true
	disturbed := runs(wrong, "floor-dir", 1)
	disturbed[0].Foreign = 0.13
	list := disturbed
	for c, k := range map[cell]float64{wrong: 1, right: 4} {
		list = append(list, runs(c, "floor-dir", 1, 1, 1)...)
		list = append(list, runs(c, "fastlabel", 2*k, 1*k, 3*k)...)
		list = append(list, runs(c, "chcon", 8*k)...)
	}
	file := filepath.Join(t.TempDir(), "results")
	var text bytes.Buffer
	for _, r := range list {
		if err := json.NewEncoder(&text).Encode(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(file, text.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		want []string
	}{
		{[]string{file}, []string{
			"15 runs; in 1 of them other programs ",
			"ext4 flat 10 wrong -T 2 fastlabel 2 2.00 (1.50–2.50) 3 0 0 0\n",
			"ext4 flat 10 right cold -T 2 fastlabel 8 8.00 (6.00–10.00) 3 0 0 0\n",
			"\nfastlabel 2.000 8.000 4.000 2 2.00: ext4 flat 10 wrong -T 2 8.00: ext4 flat 10 right cold -T 2\n",
			"\nchcon 4.000 4.000 4.000 2 4.00: ",
		}},
		{[]string{"-base", "chcon", file}, []string{"\nfastlabel 0.250 0.250 0.250 2 0.25: "}},
	} {
		var out bytes.Buffer
		if err := table(&out, c.args); err != nil {
			t.Fatal(err)
		}
		got := regexp.MustCompile(` +`).ReplaceAllString(out.String(), " ")
		for _, want := range c.want {
			if !strings.Contains(got, want) {
				t.Errorf("%v: no %q in\n%s", c.args, want, got)
			}
		}
	}
	if err := os.WriteFile(file, []byte("{}\n{\"wall\":\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := table(&text, []string{file}); err == nil {
		t.Error("half a line is taken")
	}
}
