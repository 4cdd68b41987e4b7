// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	current "go.podman.io/common/pkg/hooks/1.0.0"
)

// makeTargets runs make, without what a make above this test passes down.
func makeTargets(t *testing.T, arguments ...string) {
	t.Helper()
	cmd := exec.Command("make", append([]string{"-C", "../.."}, arguments...)...)
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

// checkManual holds that the installed page shows each flag of the program's --help, and
// the text behind the flags as it is.
func checkManual(t *testing.T, program, page string) {
	t.Helper()
	file, err := os.Open(page)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	unzipped, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(unzipped)
	if err != nil {
		t.Fatal(err)
	}
	var args []string
	if _, command, ok := strings.Cut(strings.TrimSuffix(filepath.Base(page), ".1.gz"), "-"); ok {
		args = []string{command}
	}
	help, code := runProgram(t, program, append(args, "--help")...)
	if code != 0 {
		t.Fatalf("%v --help: exit %d", args, code)
	}
	_, help, _ = bytes.Cut(help, []byte("\n\n"))
	for line := range strings.Lines(string(help)) {
		line = strings.TrimSuffix(line, "\n")
		want := strings.ReplaceAll(line, `\`, `\e`)
		if flag := regexp.MustCompile(`^ +(-\w, )?(--[\w-]+)( \S+)? {2,}`).FindStringSubmatch(line); flag != nil {
			want = `\fB` + flag[2] + `\fP`
			if flag[3] != "" {
				want += "=" + strings.TrimSpace(flag[3])
			}
		} else if strings.HasSuffix(line, "lags:") || line == "Examples:" {
			continue
		}
		if !strings.Contains(string(text), want) {
			t.Errorf("%s lacks %q:\n%s", page, want, text)
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
			var h current.Hook
			if err := json.Unmarshal(text, &h); err != nil || h.Hook.Path != c.program {
				t.Errorf("the hook runs %q (%v), not %q", h.Hook.Path, err, c.program)
			}
			if same := strings.Replace(string(text), c.program, program, 1); same != readFiles(t)[hookFile] {
				t.Errorf("more than the path differs:\n%s", text)
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

// Installed for good, the hook is found by the matcher and its program runs.
func TestInstallRuns(t *testing.T) {
	prefix, dir := t.TempDir(), t.TempDir()
	makeTargets(t, "install", "install-hook", "PREFIX="+prefix, "HOOKSDIR="+dir)
	h, err := inject(t, dir, map[string]string{readAsks(t).relabel: "true"})
	if err != nil || len(h.CreateRuntime) != 1 {
		t.Fatalf("%+v, %v", h, err)
	}
	entry := h.CreateRuntime[0]
	cmd := exec.Command(entry.Path)
	cmd.Args = entry.Args
	cmd.Stdin = strings.NewReader(`{"ociVersion":"1.2.0","id":"c1","status":"creating","bundle":"/none","annotations":{"other":"true"}}`)
	if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("nothing asked: %v: %s", err, out)
	}
	cmd = exec.Command(entry.Path)
	cmd.Args = entry.Args
	cmd.Stdin = strings.NewReader("")
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "state on stdin is empty") {
		t.Errorf("no state: %v: %s", err, out)
	}
}
