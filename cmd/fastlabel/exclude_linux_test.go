// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/fastlabel/fastlabel/test/treetest"
)

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
