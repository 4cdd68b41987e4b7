// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"math"
	"os"
	"regexp"
	"strconv"
	"testing"
)

// TestFigures holds what README.md and docs/performance.md say of peers to the raw data.
func TestFigures(t *testing.T) {
	read := func(file string) string {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	// row returns the numbers behind the name of a row: the last such row's.
	row := func(text, begins string) (numbers []float64) {
		all := regexp.MustCompile(`(?m)^\| `+begins+`[^|]* \|([\d. |]*)`).FindAllStringSubmatch(text, -1)
		if len(all) == 0 {
			t.Fatalf("no row begins with %s", begins)
		}
		for _, word := range regexp.MustCompile(`[\d.]+`).FindAllString(all[len(all)-1][1], -1) {
			n, err := strconv.ParseFloat(word, 64)
			if err != nil {
				t.Fatal(err)
			}
			numbers = append(numbers, n)
		}
		return numbers
	}
	near := func(where string, got, want float64) {
		if math.Abs(got-want) > 0.06 { // they are rounded twice
			t.Errorf("%s: %v, and measured was %.2f", where, got, want)
		}
	}
	var order, quick bytes.Buffer
	for file, out := range map[string]*bytes.Buffer{"order": &order, "quick": &quick} {
		if err := table(out, []string{"results/2026-11-22-" + file + ".jsonl"}); err != nil {
			t.Fatal(err)
		}
	}
	million := `ext4 hash 1000000 wrong -T 2 \| `
	ours := row(order.String(), million+"fastlabel@fl-inplace")[0]
	page := read("../docs/performance.md")
	first, _, _ := bytes.Cut([]byte(page), []byte("all right")) // the table of seconds
	for of, text := range map[string]string{"README.md": read("../README.md"), "performance.md": string(first)} {
		near(of, row(text, "fastlabel")[0], ours)
		for peer, measured := range map[string]string{"`chcon": "chcon", "go-selinux": "go-selinux"} {
			seconds := row(order.String(), million+measured)[0]
			got := row(text, peer)
			near(of+", "+measured, got[0], seconds)
			near(of+", "+measured, got[1], seconds/ours)
		}
	}
	for peer, measured := range map[string]string{"go-selinux": "go-selinux", "`chcon": "chcon", "`setfiles": "setfiles"} {
		want := row(quick.String(), measured)
		for i, got := range row(page, peer)[:3] {
			near(measured, got, want[i])
		}
	}
}
