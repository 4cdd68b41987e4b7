// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/exit"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/words"
	"github.com/fastlabel/fastlabel/test/treetest"
)

// TestGlob: patterns match what glob(3) has for restorecon.
func TestGlob(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("HOME", "lib")
	for _, p := range []string{"lib/plocate/db", "lib/plocate2/db", "lib/other/f", "lib/.hidden/f", "lib/a*b", "lib/a]b", "lib/axb", "lib/[x", "lib/{p,q}", "lib/a,b", "lib/x y", `lib/b\c`} {
		treetest.Must(t, os.MkdirAll(filepath.Dir(p), 0o700))
		treetest.Must(t, os.WriteFile(p, nil, 0o600))
	}
	for pattern, want := range map[string]string{
		"lib/ploc*":                      "lib/plocate lib/plocate2",
		"lib/ploc*/":                     "lib/plocate/ lib/plocate2/",
		"lib/*/db":                       "lib/plocate/db lib/plocate2/db",
		"l*b/?[lt]*":                     "lib/other lib/plocate lib/plocate2",
		"lib/*hidden":                    "lib/.hidden",
		"lib/.*":                         "lib/.hidden",
		"lib/a*b":                        "lib/a*b", // by its name
		`lib/a\*b`:                       "lib/a*b",
		"lib/a[!,*]b":                    "lib/a]b lib/axb",
		"lib/a[[:alpha:]]b":              "lib/axb",
		"lib/a[]x]b":                     "lib/a]b lib/axb",
		"lib/a[!]x]b":                    "lib/a*b lib/a,b",
		"~/o*/":                          "lib/other/",
		"~root":                          "/root",
		"~nobody-here":                   "~nobody-here",
		"lib/[[]x":                       "lib/[x",
		"lib/[x":                         "lib/[x",
		"lib/b?c":                        `lib/b\c`,
		"lib/{p,q}":                      "lib/{p,q}",
		"lib/{other,plocate{2,},gone}/*": "lib/other/f lib/plocate2/db lib/plocate/db",
		"{lib/x*,{}":                     "{lib/x*,{}",
		"lib/gone*":                      "lib/gone*",
		"lib/f/*":                        "lib/f/*",
		"lib/[b-a]*":                     "lib/[b-a]*",
		`lib/x\ y`:                       "lib/x|y",
	} {
		got := glob(pattern)
		if got := strings.ReplaceAll(strings.Join(got, " "), "x y", "x|y"); got != want {
			t.Errorf("%s: %s, want %s", pattern, got, want)
		}
	}
}

// --exclude takes globs, which match in each PATH: none leads out of it, and one that
// matches nothing is hardly meant.
func TestExcludeGlob(t *testing.T) {
	treetest.Need(t, "root", "plain")
	t.Chdir(t.TempDir())
	for _, dir := range []string{"v/a/cache", "v/b/cache", "v/b/[x]", "w/cache1", "other/cache"} {
		treetest.Must(t, os.MkdirAll(dir, 0o700))
	}
	setLabel(t, "v", etcLabel) // or skip
	treetest.Must(t, os.Symlink("../other", "v/out"))
	here, err := os.Getwd()
	treetest.Must(t, err)
	for args, want := range map[string]string{
		"-e */cache v":                       "v/a/cache v/b/cache",
		"-e */cache v/":                      "v/a/cache v/b/cache",
		"-e ./?/cache v":                     "v/a/cache v/b/cache",
		"-e cache[0-9] -e */cache v w":       "v/a/cache v/b/cache w/cache1",
		"-e v/b/[x] v":                       "v/b/[x]", // a file has that name
		"-e " + here + "/v/? " + here + "/v": here + "/v/a " + here + "/v/b",
	} {
		var skipped []string
		got := transcript(real(), calls("verify "+args))
		for line := range strings.Lines(got) {
			if _, name, ok := strings.Cut(strings.TrimSuffix(line, "\": skipped: excluded\n"), "2> fastlabel: \""); ok && strings.Contains(line, "excluded") {
				skipped = append(skipped, name)
			}
		}
		if slices.Sort(skipped); strings.Join(skipped, " ") != want {
			t.Errorf("%s: %s", args, got)
		}
	}
	if got := transcript(real(), calls("-e x* -f /dev/null")); !strings.Contains(got, "it names no path\nexit 0\n") {
		t.Error(got)
	}
	for args, says := range map[string]string{
		"-e nothing* v": "--exclude nothing*: nothing in PATH matches it; nothing was begun",
		"-e out/* v":    "--exclude out/*: nothing in PATH matches it; nothing was begun",
		"-e [ v":        "--exclude [: syntax error in pattern; nothing was begun",
	} {
		if got := transcript(real(), calls(args)); !strings.Contains(got, says) || !strings.HasSuffix(got, "exit 2\n\n") {
			t.Errorf("%s: %s", args, got)
		}
	}
}

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
