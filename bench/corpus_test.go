// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io/fs"
	"os"
	"slices"
	"testing"
)

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

func TestPlant(t *testing.T) {
	// What one step of the making may add beyond n.
	step := map[string]int{"tiny": 4, "maildir": 4}
	for corpus := range corpora {
		t.Run(corpus, func(t *testing.T) {
			for _, n := range []int{1, 10, 1000} {
				a, b := t.TempDir(), t.TempDir()
				count, err := plant(a, corpus, n, "")
				if err != nil {
					t.Fatal(err)
				}
				first := list(t, a)
				if len(first) != count {
					t.Errorf("%d: says %d, made %d", n, count, len(first))
				}
				if count < n || count > n+max(n/100, step[corpus]) {
					t.Errorf("%d: made %d", n, count)
				}
				if _, err := plant(b, corpus, n, ""); err != nil {
					t.Fatal(err)
				}
				if !slices.Equal(first, list(t, b)) {
					t.Errorf("%d: another tree the second time", n)
				}
			}
		})
	}
	if _, err := plant(t.TempDir(), "bonsai", 10, ""); err == nil {
		t.Error("planted a bonsai")
	}
	full := t.TempDir()
	for range 2 {
		if _, err := plant(full, "flat", 3, ""); err != nil {
			return
		}
	}
	t.Error("planted twice in one place")
}
