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
	expects(t, real(), "-e x* -f /dev/null", exit.Done, "it names no path\n")
	for args, says := range map[string]string{
		"-e nothing* v": "--exclude nothing*: nothing in PATH matches it; nothing was begun",
		"-e out/* v":    "--exclude out/*: nothing in PATH matches it; nothing was begun",
		"-e [ v":        "--exclude [: syntax error in pattern; nothing was begun",
	} {
		expects(t, real(), args, exit.Usage, says)
	}
}

// TestSplitPaths: a list gives its paths, or says which line or record is none.
func TestSplitPaths(t *testing.T) {
	const nul = "holds a NUL; use --null for paths that end in NUL"
	for data, want := range map[string][2]string{ // of lines, and of records
		"":                 {"[]", "[]"},
		"\n\n":             {"[]", `["\n\n"]`},
		"\na\n\nb":         {`["a" "b"]`, `["\na\n\nb"]`},
		"a \r\n\tb\n":      {`["a \r" "\tb"]`, `["a \r\n\tb\n"]`},
		"a\nb\x00c\n":      {"line 2 " + nul, `["a\nb" "c\n"]`},
		"a\x00b\x00":       {"line 1 " + nul, `["a" "b"]`},
		"a\x00\x00b":       {"line 1 " + nul, "record 2 is empty"},
		"\x00":             {"line 1 " + nul, "record 1 is empty"},
		"a\xff\x1b[2J\x00": {"line 1 " + nul, `["a\xff\x1b[2J"]`},
	} {
		for i, null := range []bool{false, true} {
			paths, err := splitPaths([]byte(data), "the\x1blist", null)
			got := fmt.Sprintf("%q", paths)
			if err != nil {
				if !errors.As(err, new(exit.UsageError)) || paths != nil {
					t.Errorf("%q: %q, %v", data, paths, err)
				}
				got = strings.TrimPrefix(err.Error(), `--files-from "the\x1blist": `)
			}
			if got != want[i] {
				t.Errorf("%q, null %t: %s, not %s", data, null, got, want[i])
			}
		}
	}
}
