// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// Every flag that the help shows is in every script, and each shell that is
// here takes its own.
func TestCompletion(t *testing.T) {
	for shell := range strings.FieldsSeq(shells) {
		script := completion(shell)
		for _, o := range offered("lpvo") {
			if !strings.Contains(script, o.long) {
				t.Errorf("%s: --%s is missing", shell, o.long)
			}
		}
		for _, name := range commandNames() {
			if !strings.Contains(script, name) {
				t.Errorf("%s: %s is missing", shell, name)
			}
		}
		if path, err := exec.LookPath(shell); err == nil {
			cmd := exec.Command(path, "-n")
			cmd.Stdin = strings.NewReader(script)
			if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
				t.Errorf("%s -n: %v %s", shell, err, out)
			}
		}
	}
}

func TestBashCompletes(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash here")
	}
	t.Chdir(t.TempDir())
	for _, dir := range []string{"some dir", "proud"} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile("some file", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	const ask = `
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
_fastlabel
printf '%s\n' "${COMPREPLY[@]}"`
	for _, c := range []struct {
		words string // separated by |
		want  string
	}{
		{"fastlabel|pro", "probe|proud"},
		{"fastlabel|-n|pro", "probe|proud"},
		{"fastlabel|--|pro", "proud"},
		{"fastlabel|x|pro", "proud"},
		{"fastlabel|-l|s0|ver", "verify|version"},
		{"fastlabel|probe|ver", ""},
		{"fastlabel|--skip|", "none|root|top|changed"},
		{"fastlabel|--skip|=|t", "top"},
		{"fastlabel|--skip|=", "none|root|top|changed"},
		{"fastlabel|--no-s", "--no-seal|--no-sync"},
		{"fastlabel|probe|--de", "--depth"},
		{"fastlabel|verify|--de", ""},
		{"fastlabel|--de", ""},
		{"fastlabel|-e|some", "some dir"},
		{"fastlabel|--reference|some", "some dir|some file"},
		{"fastlabel|completion|", "bash|zsh|fish"},
		{"fastlabel|-t|", ""},
		{"fastlabel|--skip|=|root|pro", "probe|proud"},
	} {
		cmd := exec.Command(bash, append([]string{"-c", completion("bash") + ask, "bash"}, strings.Split(c.words, "|")...)...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v: %s", c.words, err, out)
		}
		got := strings.Split(strings.TrimSpace(string(out)), "\n")
		want := strings.Split(c.want, "|")
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, not %q", c.words, got, want)
		}
	}
}
