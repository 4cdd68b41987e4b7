// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/exit"
	"github.com/fastlabel/fastlabel/test/treetest"
)

// What the scripts are answered: words, and what else the shell may complete.
func TestCompletes(t *testing.T) {
	const files, none, dirs = ":0", ":4", ":16"
	t.Chdir(t.TempDir())
	for _, name := range []string{"some dir", "proud", ".pro"} {
		treetest.Must(t, os.Mkdir(name, 0o700))
	}
	for _, c := range []struct{ typed, want, also string }{
		{"", "completion help hook label probe restorecon verify version", files},
		{"pro", "probe", files},
		{"some", "", files},
		{"-l s0 ver", "", files}, // the shell's
		{"x pro", "", files},
		{"probe ver", "", files},
		{"label pro", "", files},
		{"label --no-s", "--no-seal", none},
		{"help pr", "probe", none},
		{"help probe pr", "", none},
		{"version p", "", none},
		{"--skip ", "none root top", none},
		{"--skip=t", "top", none},
		{"--no-s", "--no-seal", none},
		{"probe --de", "--depth", none},
		{"verify --de", "", none},
		{"-e x --excl", "--exclude", none},
		{"-e some", "", dirs},
		{"--reference some", "", files},
		{"completion ", "bash fish powershell zsh", none},
		{"-t container_f", "container_file_t", none},
		{"verify --type=container_ro_", "container_ro_file_t", none},
		{"-t no_such", "", none},
		{"-u ", "", none},
		{"--quite -t container_f", "", files},
	} {
		var out strings.Builder
		if code := real().run(t.Context(), nil, &out, io.Discard, append([]string{"__complete"}, strings.Split(c.typed, " ")...)); code != exit.Done {
			t.Fatal(code)
		}
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		var words []string
		_, begun, is := strings.Cut(c.typed[strings.LastIndex(c.typed, " ")+1:], "=")
		if !is {
			begun = c.typed[strings.LastIndex(c.typed, " ")+1:]
		}
		for _, l := range lines[:len(lines)-1] {
			if w, _, _ := strings.Cut(l, "\t"); strings.HasPrefix(w, begun) { // the shell picks them
				words = append(words, w)
			}
		}
		slices.Sort(words)
		if got := strings.Join(words, " "); got != c.want || lines[len(lines)-1] != c.also {
			t.Errorf("%q: %q %s, not %q %s", c.typed, got, lines[len(lines)-1], c.want, c.also)
		}
	}
}
