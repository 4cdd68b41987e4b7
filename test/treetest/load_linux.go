// SPDX-License-Identifier: Apache-2.0

package treetest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Load reads testdata/trees/NAME.txt of the module, or of a module above it,
// from wherever below it the test runs.
func Load(t testing.TB, name string) *Tree {
	t.Helper()
	file := filepath.Join(treesDir(t), name+".txt")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return parse(t, filepath.Base(file), string(text))
}

// Text parses a tree written in the test itself.
func Text(t testing.TB, text string) *Tree {
	t.Helper()
	return parse(t, "text", text)
}

// All lists the names of the trees in testdata/trees.
func All(t testing.TB) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(treesDir(t), "*.txt"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no trees: %v", err)
	}
	for i, f := range files {
		files[i] = strings.TrimSuffix(filepath.Base(f), ".txt")
	}
	return files
}

func parse(t testing.TB, name, text string) *Tree {
	t.Helper()
	tr, err := Parse(name, text)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

func treesDir(t testing.TB) string {
	t.Helper()
	up, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		dir := filepath.Join(up, "testdata", "trees")
		if fi, err := os.Stat(dir); err == nil && fi.IsDir() {
			return dir
		}
		if filepath.Dir(up) == up {
			t.Fatal("no testdata/trees above the working directory")
		}
		up = filepath.Dir(up)
	}
}
