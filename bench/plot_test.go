// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// texts parses an SVG and returns the words in it.
func texts(t *testing.T, file string) []string {
	t.Helper()
	svg, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var words []string
	root := ""
	for d := xml.NewDecoder(bytes.NewReader(svg)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		switch token := token.(type) {
		case xml.StartElement:
			if root == "" {
				root = token.Name.Local
			}
		case xml.CharData:
			if word := strings.TrimSpace(string(token)); word != "" {
				words = append(words, word)
			}
		}
	}
	if root != "svg" {
		t.Errorf("%s: the root is <%s>", file, root)
	}
	return words
}

func TestPlot(t *testing.T) {
	var records []record
	at := func(c cell, who string, walls ...float64) { records = append(records, rounds(c, who, walls...)...) }
	c := cell{FS: "ext4", Corpus: "hash", State: "wrong", Threads: 2}
	for _, c.N = range []int{1e3, 1e4, 1e5} {
		at(c, "fastlabel", 1e-6*float64(c.N), 2e-6*float64(c.N))
		at(c, "floor-dir", 1e-6*float64(c.N))
	}
	c = cell{FS: "xfs", Corpus: "flat", State: "right", N: 1e5}
	for _, c.Threads = range []int{0, 1, 2, 8} {
		at(c, "fastlabel", 1/float64(1+c.Threads))
		if c.Threads != 1 {
			at(c, "without-one", 1)
		}
	}
	at(cell{FS: "tmpfs", Corpus: "flat", State: "right", N: 1e5, Threads: 2}, "lonely", 1)
	dir := t.TempDir()
	file := filepath.Join(dir, "results")
	write(t, file, records)
	slices.Reverse(records)
	backwards := filepath.Join(dir, "backwards")
	write(t, backwards, records)

	one, two := filepath.Join(dir, "one"), filepath.Join(dir, "two")
	for _, args := range [][]string{{one, file}, {two, backwards}} {
		if err := plot(args); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := list(t, one), []string{"size-ext4-hash-wrong-T2.svg", "threads-xfs-right-100000.svg"}; !slices.Equal(got, want) {
		t.Fatalf("%v, want %v", got, want)
	}
	for name, want := range map[string][]string{
		"size-ext4-hash-wrong-T2.svg":  {"fastlabel", "floor-dir", "entries", "time per entry, µs", "1,000", "10 million"},
		"threads-xfs-right-100000.svg": {"fastlabel, flat", "entries a second, relative to one thread", "1", "2", "8"},
	} {
		words := texts(t, filepath.Join(one, name))
		for _, w := range want {
			if !slices.Contains(words, w) {
				t.Errorf("%s: no %q in %q", name, w, words)
			}
		}
		if slices.ContainsFunc(words, func(w string) bool { return strings.Contains(w, "without-one") || strings.Contains(w, "NaN") }) {
			t.Errorf("%s: %q", name, words)
		}
		a, _ := os.ReadFile(filepath.Join(one, name))
		b, _ := os.ReadFile(filepath.Join(two, name))
		if !bytes.Equal(a, b) {
			t.Errorf("%s depends on the order of the results", name)
		}
	}
	write(t, file, nil)
	if err := plot([]string{one, file}); err == nil {
		t.Error("plotted nothing")
	}
}

func TestStretches(t *testing.T) {
	c := chart{lines: map[string]*line{}}
	for x := range 6 {
		c.line("whole").points[float64(x)] = 1
	}
	for _, x := range []float64{0, 1, 3, 5} {
		c.line("holes").points[x] = 1
	}
	for name, want := range map[string][][]float64{"whole": {{0, 1, 2, 3, 4, 5}}, "holes": {{0, 1}, {3}, {5}}} {
		if got := c.stretches(c.lines[name]); !slices.EqualFunc(got, want, slices.Equal) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}
