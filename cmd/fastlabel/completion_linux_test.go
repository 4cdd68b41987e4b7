// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/exit"
	"github.com/fastlabel/fastlabel/test/treetest"
)

// script is what the command prints for a shell, which that takes.
func script(t *testing.T, shell string) string {
	t.Helper()
	treetest.Need(t, shell)
	var out, stderr strings.Builder
	if code := fake().run(t.Context(), nil, &out, &stderr, []string{"completion", shell}); code != exit.Done {
		t.Fatal(code, stderr.String())
	}
	cmd := exec.Command(shell, "-n")
	cmd.Stdin = strings.NewReader(out.String())
	if said, err := cmd.CombinedOutput(); err != nil || len(said) > 0 {
		t.Errorf("%s -n: %v %s", shell, err, said)
	}
	return out.String()
}

// TestScripts: each shell reads its script.
func TestScripts(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish"} {
		t.Run(shell, func(t *testing.T) { script(t, shell) })
	}
}

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

// called makes the command be found in PATH as fastlabel, which a script asks for
// types.
func called(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	treetest.Must(t, os.Symlink(os.Args[0], filepath.Join(dir, "fastlabel")))
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	t.Setenv("FASTLABEL_TEST_AS", "real")
}

// bash is handed the words as bash-completion would.
func TestBashCompletes(t *testing.T) {
	called(t)
	t.Chdir(t.TempDir())
	const ask = `
COMP_WORDS=("$@")
_get_comp_words_by_ref() { words=("${COMP_WORDS[@]}"); cword=$((${#words[@]} - 1)); cur=${words[cword]}; }
__start_fastlabel
printf '%s\n' "${COMPREPLY[@]%% *}"`
	for words, want := range map[string]string{
		"fastlabel|prob":                         "probe",
		"fastlabel|--no-s":                       "--no-seal",
		"fastlabel|verify|--type=container_ro_f": "container_ro_file_t",
	} {
		out, err := exec.Command("bash", append([]string{"-c", script(t, "bash") + ask, "bash"}, strings.Split(words, "|")...)...).Output()
		if err != nil || strings.ReplaceAll(strings.TrimSpace(string(out)), "\n", "|") != want {
			t.Errorf("%s: %q, not %q: %v", words, out, want, err)
		}
	}
}
