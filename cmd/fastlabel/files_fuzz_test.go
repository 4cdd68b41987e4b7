// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/exit"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/words"
)

// naivePaths reads the list byte by byte: the paths, or what is said of the
// first record that is none.
func naivePaths(data string, null bool) (paths []string, fault string) {
	if data != "" && !strings.HasSuffix(data, terminator(null)) {
		data += terminator(null)
	}
	start, n := 0, 1
	for i := range len(data) {
		if data[i:i+1] != terminator(null) {
			continue
		}
		switch path := data[start:i]; {
		case strings.Contains(path, "\x00"):
			return nil, fmt.Sprintf("line %d holds a NUL", n)
		case path != "":
			paths = append(paths, path)
		case null:
			return nil, fmt.Sprintf("record %d is empty", n)
		}
		start, n = i+1, n+1
	}
	return paths, ""
}

func terminator(null bool) string {
	if null {
		return "\x00"
	}
	return "\n"
}

// FuzzFilesFrom: a list gives its paths or an error, never both, as a naive
// reader has them, and paths that are written out again are read as they were.
func FuzzFilesFrom(f *testing.F) {
	for _, data := range []string{
		"", "\n", "\n\n", "\x00", "\x00\x00", "a", "a\n", "a\x00", "a\nb", "a\n\nb\n\n", "\na", "\x00a",
		"a\x00b\x00", "a\x00\x00b", "a\nb\x00c\n", "a\x00\n", " a \r\n\tb\n", "a\nb\x00\n\x00", "\xff\x1b[2J\n",
	} {
		f.Add([]byte(data), false, "list")
		f.Add([]byte(data), true, "-")
	}
	f.Add([]byte("\x00"), true, "a\x1b[2J\nb"+strings.Repeat("c", 100))
	f.Fuzz(func(t *testing.T, data []byte, null bool, file string) {
		before := string(data)
		paths, err := splitPaths(data, file, null)
		if string(data) != before {
			t.Fatalf("the data became %q, was %q", data, before)
		}
		want, fault := naivePaths(before, null)
		if fault != "" {
			var usage exit.UsageError
			if err == nil || paths != nil || !errors.As(err, &usage) || !strings.Contains(err.Error(), ": "+fault) {
				t.Fatalf("%q, null %t: %q, %v; want %q", data, null, paths, err, fault)
			}
			// The name of the file is quoted, and cut.
			if msg := err.Error(); len(msg) > 600 || words.Clean(msg) != msg {
				t.Fatalf("%d bytes: %q", len(msg), msg)
			}
			return
		}
		if err != nil || !slices.Equal(paths, want) {
			t.Fatalf("%q, null %t: %q, %v; want %q", data, null, paths, err, want)
		}
		// Paths that are written out again are read as they were.
		end := terminator(null)
		if again, err := splitPaths([]byte(strings.Join(append(paths, ""), end)), file, null); err != nil || !slices.Equal(again, paths) {
			t.Fatalf("%q, null %t: %q, %v; want %q", data, null, again, err, paths)
		}
	})
}
