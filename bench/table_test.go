// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"math"
	"path/filepath"
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
	if got := quantile(nil, 0.5); !math.IsNaN(got) {
		t.Errorf("of nothing: %v", got)
	}
}

func TestGeometric(t *testing.T) {
	if got := geometric([]float64{0.5, 2, 8}); math.Abs(got-2) > 1e-12 {
		t.Errorf("%v, want 2", got)
	}
	if got := geometric(nil); !math.IsNaN(got) {
		t.Errorf("of nothing: %v", got)
	}
}

// rounds is what a contestant took in a cell, a run a round.
func rounds(c cell, contestant string, walls ...float64) []record {
	var list []record
	for i, wall := range walls {
		list = append(list, record{cell: c, Entries: c.N, Contestant: contestant, Round: i, took: took{Wall: wall}})
	}
	return list
}

func TestFloor(t *testing.T) {
	wrong := cell{FS: "ext4", Corpus: "flat", N: 10, State: "wrong", Threads: 2}
	four, auto := wrong, wrong
	four.Threads, auto.Threads = 4, 0
	var list []record
	for _, c := range []cell{wrong, four, auto} {
		list = append(list, rounds(c, "floor-dir", 1, 2, 3)...)
		list = append(list, rounds(c, "floor-inode", 5, 4, 3)...)
		list = append(list, rounds(c, "floor-dir-mend", 1.5)...)
		list = append(list, rounds(c, "floor-inode-fchdir", 9)...)
		list = append(list, rounds(c, "go-selinux-call", 5, 6, 7)...)
	}
	list = append(list, rounds(four, "floor-dir", 0.5, 0.5, 0.5, 0.5)...)
	b, _ := newBoard(list, false)
	for _, c := range []struct {
		cell       cell
		contestant string
		want       float64
	}{
		{wrong, "fastlabel", 2},
		{wrong, "chcon", 2},
		{wrong, "fastlabel-exact", 1.5},
		{wrong, "fastlabel-fchdir", 9},
		{four, "fastlabel", 0.5},
		{auto, "fastlabel", 0.5}, // of four threads
		{wrong, "dropin-call", 6},
	} {
		if got, ok := b.floor(c.cell, c.contestant); !ok || got != c.want {
			t.Errorf("%s, %s: %v, %v, want %v", c.cell, c.contestant, got, ok, c.want)
		}
	}
	wrong.FS = "xfs"
	if got, ok := b.floor(wrong, "fastlabel"); ok {
		t.Errorf("a floor of %v where none ran", got)
	}
}

func TestTable(t *testing.T) {
	wrong := cell{FS: "ext4", Corpus: "flat", N: 10, State: "wrong", Threads: 2}
	right := wrong
	right.State = "right"
	var list []record
	for c, k := range map[cell]float64{wrong: 1, right: 4} {
		list = append(list, rounds(c, "floor-dir", 1, 1, 1)...)
		list = append(list, rounds(c, "fastlabel", 2*k, 1*k, 3*k)...)
		list = append(list, rounds(c, "chcon", 8*k)...)
	}
	disturbed := rounds(wrong, "fastlabel", 100)
	disturbed[0].Foreign = 13
	counted := rounds(wrong, "fastlabel", 1000)[0]
	counted.Calls, counted.PeakThreads, counted.Foreign = 25, 9, 1000
	list = append(list, counted)
	file := filepath.Join(t.TempDir(), "results")
	write(t, file, append(list, disturbed...))

	for _, c := range []struct {
		args []string
		fail string
		want []string
	}{
		{[]string{file}, "", []string{
			"15 runs; 1 more left out",
			"| ext4 flat 10 wrong -T 2 | fastlabel | 2 | 3 | 2.00 (1.50–2.50) | 0 | 0 | 2.500 | 9 |",
			"| ext4 flat 10 right -T 2 | fastlabel | 8 | 3 | 8.00 (6.00–10.00) | 0 | 0 |  |  |",
			"| fastlabel | 4.000 | 2 | 8.00: ext4 flat 10 right -T 2 |",
			"| chcon | 4.00 | 4.00 | | 4.00: ",
		}},
		{[]string{"-all", file}, "", []string{"16 runs; 0 more", "| fastlabel | 2.5 | 4 | 2.50 ("}},
	} {
		var out bytes.Buffer
		err := table(&out, c.args)
		if (err == nil) != (c.fail == "") || err != nil && !strings.Contains(err.Error(), c.fail) {
			t.Errorf("%v: %v, want %q", c.args, err, c.fail)
		}
		for _, want := range c.want {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%v: no %q in\n%s", c.args, want, &out)
			}
		}
	}
}

func TestCompare(t *testing.T) {
	c := cell{FS: "ext4", Corpus: "flat", N: 10, State: "wrong", Threads: 2}
	file := filepath.Join(t.TempDir(), "results")
	write(t, file, append(rounds(c, "a", 1, 2, 4), rounds(c, "b", 1, 3, 8)...))
	var out bytes.Buffer
	if err := compare(&out, []string{"a", "b", file}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"| 2 | 3 | 1.500 | 1.250–1.750 | 3 |", "b takes 1.500 of a's time"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, &out)
		}
	}
	if err := compare(&out, []string{"a", "c", file}); err == nil {
		t.Error("compared with what never ran")
	}
}
