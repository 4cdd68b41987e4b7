// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/fastlabel/fastlabel/test/treetest"
)

// Every flag that the help shows is in every script, and each shell that is
// here takes its own.
func TestCompletion(t *testing.T) {
	for shell := range strings.FieldsSeq(shells) {
		script := completion(shell)
		for _, o := range offered(everyCommand) {
			if !strings.Contains(script, o.long) {
				t.Errorf("%s: --%s is missing", shell, o.long)
			}
		}
		for _, name := range commandNames() {
			if !strings.Contains(script, name) {
				t.Errorf("%s: %s is missing", shell, name)
			}
		}
		t.Run(shell, func(t *testing.T) {
			treetest.Need(t, shell)
			cmd := exec.Command(shell, "-n")
			cmd.Stdin = strings.NewReader(script)
			if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
				t.Errorf("%s -n: %v %s", shell, err, out)
			}
		})
	}
}

// called makes the command be found in PATH as fastlabel, which a script asks for
// types.
func called(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	if err := os.Symlink(os.Args[0], filepath.Join(dir, "fastlabel")); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	t.Setenv("FASTLABEL_TEST_AS", "real")
}

func TestBashCompletes(t *testing.T) {
	treetest.Need(t, "bash")
	called(t)
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
		{"fastlabel|--skip|", "none|root|top|unchanged"},
		{"fastlabel|--skip|=|t", "top"},
		{"fastlabel|--skip|=", "none|root|top|unchanged"},
		{"fastlabel|--no-s", "--no-seal|--no-sync"},
		{"fastlabel|probe|--de", "--depth"},
		{"fastlabel|verify|--de", ""},
		{"fastlabel|--de", ""},
		{"fastlabel|-e|some", "some dir"},
		{"fastlabel|--reference|some", "some dir|some file"},
		{"fastlabel|completion|", "bash|zsh|fish"},
		{"fastlabel|-t|container_f", "container_file_t"},
		{"fastlabel|verify|--type|=|container_ro_", "container_ro_file_t"},
		{"fastlabel|-t|no such", ""},
		{"fastlabel|-u|", ""},
		{"fastlabel|--skip|=|root|pro", "probe|proud"},
	} {
		cmd := exec.Command("bash", append([]string{"-c", completion("bash") + ask, "bash"}, strings.Split(c.words, "|")...)...)
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

// fish is asked what it would offer.
func TestFishCompletes(t *testing.T) {
	treetest.Need(t, "fish")
	called(t)
	t.Setenv("HOME", t.TempDir())
	t.Chdir(t.TempDir())
	for line, want := range map[string]string{
		"fastlabel -t container_f":            "container_file_t",
		"fastlabel verify --type=container_r": "--type=container_ro_file_t",
		"fastlabel --skip t":                  "top",
		"fastlabel prob":                      "probe",
		"fastlabel verify --no-s":             "",
	} {
		cmd := exec.Command("fish", "--no-config", "-c", completion("fish")+"\ncomplete -C '"+line+"'")
		out, err := cmd.Output()
		got, _, _ := strings.Cut(string(out), "\t")
		if err != nil || strings.TrimSpace(got) != want {
			t.Errorf("%s: %q, %v; not %q", line, out, err, want)
		}
	}
}

// zsh completes what is typed at its prompt, since its completion works nowhere
// else.
func TestZshCompletes(t *testing.T) {
	treetest.Need(t, "zsh")
	called(t)
	dir := t.TempDir()
	t.Setenv("HOME", dir)
	t.Setenv("TERM", "dumb")
	t.Chdir(dir)
	if err := os.WriteFile("_fastlabel", []byte(completion("zsh")), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("zsh", "-f", "-i")
	tty, err := pty.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	defer tty.Close()
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	typed := func(keys, until string) string {
		if _, err := tty.WriteString(keys); err != nil {
			t.Fatal(err)
		}
		return readUntil(t, tty, until)
	}
	// ^X shows what the line has become, ^U takes it away. Each is read after the
	// shell has done with the tab before it.
	typed("PS1=; fpath=($PWD $fpath); autoload -Uz compinit; compinit -u -D;"+
		" show() { print -r -- \"<${BUFFER% }>\"; }; zle -N show; bindkey ^X show; print ready''.\n", "ready.")
	for keys, want := range map[string]string{
		"fastlabel -t container_f\t":            "<fastlabel -t container_file_t>",
		"fastlabel verify --type=container_r\t": "<fastlabel verify --type=container_ro_file_t>",
		"fastlabel --skip un\t":                 "<fastlabel --skip unchanged>",
		"fastlabel prob\t":                      "<fastlabel probe>",
		"fastlabel probe --dep\t":               "<fastlabel probe --depth=>",
		"fastlabel verify --dep\t":              "<fastlabel verify --dep>",
	} {
		if got := typed(keys+"\x18", ">\r"); !strings.Contains(got, want) {
			t.Errorf("%q: %q, not %q", keys, got, want)
		}
		if _, err := tty.WriteString("\x15"); err != nil {
			t.Fatal(err)
		}
	}
}

// readUntil returns what comes, until text is there.
func readUntil(t *testing.T, tty *os.File, text string) string {
	t.Helper()
	var got strings.Builder
	if err := tty.SetReadDeadline(time.Now().Add(treetest.Patience)); err != nil {
		t.Fatal(err)
	}
	for buf := make([]byte, 4096); !strings.Contains(got.String(), text); {
		n, err := tty.Read(buf)
		got.Write(buf[:n])
		if err != nil {
			t.Errorf("waiting for %q: %v", text, err)
			break
		}
	}
	return got.String()
}
