// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// makeTargets runs make, without what a make above this test passes down.
func makeTargets(t *testing.T, arguments ...string) {
	t.Helper()
	cmd := exec.Command("make", append([]string{"-C", "../../.."}, arguments...)...)
	for _, v := range os.Environ() {
		name, _, _ := strings.Cut(v, "=")
		if !slices.Contains([]string{"MAKEFLAGS", "MFLAGS", "MAKEOVERRIDES", "MAKELEVEL", "PREFIX", "DESTDIR", "HOOKSDIR", "UNITDIR", "ZSHDIR"}, name) {
			cmd.Env = append(cmd.Env, v)
		}
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// tree lists the files below dir with their modes.
func tree(t *testing.T, dir string) map[string]fs.FileMode {
	t.Helper()
	all := map[string]fs.FileMode{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		info, err := e.Info()
		if err == nil && e.IsDir() && info.Mode().Perm() != 0o755 {
			t.Errorf("%s: %v", path, info.Mode())
		}
		if err == nil && !e.IsDir() {
			all[strings.TrimPrefix(path, dir)] = info.Mode()
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// manualPages are those of the commands that --help lists, as they are installed in MAN.
func manualPages(t *testing.T) (pages []string) {
	t.Helper()
	out, _ := runProgram(t, buildProgram(t), "--help")
	usage, _, _ := strings.Cut(strings.TrimPrefix(string(out), "Usage:"), "\n\n")
	for line := range strings.Lines(usage) {
		name := "fastlabel"
		if words := strings.Fields(line); words[1] != "[flags]" {
			name += "-" + words[1]
		}
		pages = append(pages, "MAN/"+name+".1.gz")
	}
	if len(pages) < 5 {
		t.Fatal(pages)
	}
	return pages
}

// checkManual holds that the installed page has each flag of the command's --help.
func checkManual(t *testing.T, program, page string) {
	t.Helper()
	text, err := exec.Command("gzip", "-dc", page).Output()
	if err != nil {
		t.Fatalf("%s: %v", page, err)
	}
	var args []string
	if _, command, ok := strings.Cut(strings.TrimSuffix(filepath.Base(page), ".1.gz"), "-"); ok {
		args = []string{command}
	}
	help, _ := runProgram(t, program, append(args, "--help")...)
	_, help, _ = bytes.Cut(help, []byte("\n\n")) // the usage
	for _, flag := range regexp.MustCompile(`(?m)^ +(?:-\w, )?(--[\w-]+)(?: \S+)? {2,}`).FindAllSubmatch(help, -1) {
		if !bytes.Contains(text, slices.Concat([]byte(`\fB`), flag[1], []byte(`\fP`))) {
			t.Errorf("%s lacks %s", page, flag[1])
		}
	}
}

// The files, where they are looked for, and nothing else; the hook names the
// program where it will be, which is not where DESTDIR has it.
func TestInstall(t *testing.T) {
	const looked = "/usr/share/containers/oci/hooks.d/fastlabel.json"
	pages := manualPages(t)
	for name, c := range map[string]struct {
		arguments     []string
		program, hook string
	}{
		"default":      {[]string{"install"}, "/usr/local/bin/fastlabel", ""},
		"distribution": {[]string{"install", "install-hook", "PREFIX=/usr"}, "/usr/bin/fastlabel", looked},
		"elsewhere":    {[]string{"install", "install-hook", "PREFIX=/opt/fast label"}, "/opt/fast label/bin/fastlabel", looked},
		"other hooks":  {[]string{"install", "install-hook", "HOOKSDIR=/etc/containers/oci/hooks.d"}, "/usr/local/bin/fastlabel", "/etc/containers/oci/hooks.d/fastlabel.json"},
	} {
		t.Run(name, func(t *testing.T) {
			dest := t.TempDir()
			arguments := slices.Concat(c.arguments, []string{"DESTDIR=" + dest})
			makeTargets(t, arguments...)
			got, want := tree(t, dest), map[string]fs.FileMode{c.program: 0o755}
			prefix := strings.TrimSuffix(c.program, "/bin/fastlabel")
			unit := prefix + "/lib/systemd/system/fastlabel@.service"
			for _, file := range append([]string{
				unit,
				prefix + "/share/bash-completion/completions/fastlabel",
				prefix + "/share/zsh/site-functions/_fastlabel",
				prefix + "/share/fish/vendor_completions.d/fastlabel.fish",
			}, pages...) {
				want[strings.Replace(file, "MAN", prefix+"/share/man/man1", 1)] = 0o644
			}
			for _, page := range pages {
				checkManual(t, dest+c.program, strings.Replace(page, "MAN", dest+prefix+"/share/man/man1", 1))
			}
			text, err := os.ReadFile(dest + unit)
			if want := "\nExecStart=\"" + c.program + "\" $FLAGS "; err != nil || !strings.Contains(string(text), want) {
				t.Errorf("the unit lacks %s: %v: %s", want, err, text)
			}
			if c.hook != "" {
				want[c.hook] = 0o644
			}
			for path, mode := range want {
				if got[path] != mode {
					t.Errorf("%s: %v, not %v", path, got[path], mode)
				}
				delete(got, path)
			}
			if len(got) > 0 {
				t.Errorf("installed as well: %v", got)
			}
			if c.hook == "" {
				return
			}
			text, err = os.ReadFile(dest + c.hook)
			if err != nil {
				t.Fatal(err)
			}
			if want := strings.Replace(read(t, "deploy/oci/fastlabel.json"), "/usr/bin/fastlabel", c.program, 1); string(text) != want {
				t.Errorf("the hook is\n%s, not\n%s", text, want)
			}
			makeTargets(t, append([]string{"uninstall"}, arguments[2:]...)...)
			if left := tree(t, dest); len(left) > 0 {
				t.Errorf("uninstall leaves %v", left)
			}
		})
	}
}

// An ordinary user installs below their home, and touches nothing else. Uninstalling
// leaves another's hook.
func TestInstallHome(t *testing.T) {
	home, hooks := t.TempDir(), t.TempDir()
	hook := filepath.Join(hooks, "fastlabel.json")
	if err := os.WriteFile(hook, []byte("{}"), 0o644); err != nil {
		t.Fatal(err)
	}
	// No one can write there, not even root.
	makeTargets(t, "install", "PREFIX="+home+"/.local", "HOOKSDIR=/proc/none")
	if out, err := exec.Command(home+"/.local/bin/fastlabel", "version").CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	makeTargets(t, "uninstall", "PREFIX="+home+"/.local", "HOOKSDIR="+hooks)
	if left := tree(t, home); len(left) > 0 {
		t.Errorf("uninstall leaves %v", left)
	}
	if _, err := os.Stat(hook); err != nil {
		t.Error(err)
	}
}
