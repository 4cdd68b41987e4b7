// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/opencontainers/selinux/go-selinux"

	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/exit"
	"github.com/fastlabel/fastlabel/test/treetest"
)

// A read-only PATH is one sentence and exit 3, unless everything there is right.
func TestReadOnly(t *testing.T) {
	treetest.Need(t, "root", "plain")
	dir := t.TempDir()
	v := filepath.Join(dir, "v")
	treetest.Must(t, os.MkdirAll(v+"/sub", 0o700))
	for _, name := range []string{v + "/a", v + "/sub/b"} {
		treetest.Must(t, os.WriteFile(name, nil, 0o600))
	}
	label := "system_u:object_r:usr_t:s0"
	if text := transcript(real(), calls("-q -t usr_t "+v)); !strings.HasSuffix(text, "exit 0\n\n") {
		t.Fatal(text)
	}
	treetest.Must(t, syscall.Mount(v, v, "", syscall.MS_BIND, ""))
	defer func() { _ = syscall.Unmount(v, syscall.MNT_DETACH) }()
	treetest.Must(t, syscall.Mount("", v, "", syscall.MS_BIND|syscall.MS_REMOUNT|syscall.MS_RDONLY, ""))
	const sentence = `relabel: read-only file system: not everything has the label, and nothing was written`
	for line, want := range map[string]string{
		"-v " + v:             `2> fastlabel: "` + v + `": ` + sentence + "\nexit 3\n\n",
		"-q " + v:             `2> fastlabel: "` + v + `": ` + sentence + "\nexit 3\n\n",
		"-q -t usr_t " + v:    "exit 0\n\n",
		"-q -n " + v:          `2> fastlabel: "` + v + `": ` + sentence + "\nexit 3\n\n",
		"-n -q -t usr_t " + v: "exit 0\n\n",
		"verify -q " + v:      "exit 4\n\n",
	} {
		if _, got, _ := strings.Cut(transcript(real(), calls(line)), "\n"); got != want {
			t.Errorf("%s:\n%s\nnot\n%s", line, got, want)
		}
	}
	text := transcript(real(), calls("--json "+v))
	if strings.Count(text, `"message_type":"error"`) != 1 || !strings.Contains(text, `"errno":"EROFS"`) || !strings.Contains(text, `"exit_code":3,"reason":"read-only"`) {
		t.Error(text)
	}
	if have, err := selinux.FileLabel(v + "/sub/b"); have != label || err != nil {
		t.Error(have, err)
	}
}

// One who is not root is told so once.
func TestNotRoot(t *testing.T) {
	treetest.Need(t, "root", "plain")
	dir, err := os.MkdirTemp("/tmp", "fastlabel-notroot-")
	treetest.Must(t, err)
	defer os.RemoveAll(dir)
	bin := filepath.Join(dir, "program")
	self, err := os.ReadFile(os.Args[0])
	if err == nil {
		err = os.WriteFile(bin, self, 0o755)
	}
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	for i := 0; i < 30 && err == nil; i++ {
		err = os.WriteFile(filepath.Join(dir, "f"+strings.Repeat("x", i)), nil, 0o644)
	}
	treetest.Must(t, err)
	said, code := asNobody(bin, dir)
	if n := strings.Count(said, "not root: 31 of its entries belong to others, or are closed to this user; -v lists all\n"); n != 1 || strings.Contains(said, "not permitted") {
		t.Errorf("%d times:\n%s", n, said)
	}
	if code != exit.Failed {
		t.Errorf("exit %d", code)
	}
	for _, name := range []string{"closed", "open", "other"} {
		treetest.Must(t, os.Mkdir(filepath.Join(dir, name), 0o700))
	}
	for _, name := range []string{"open", "other"} {
		treetest.Must(t, os.Chmod(filepath.Join(dir, name), 0o755))
	}
	// That there is no place for locks is true of all PATHs.
	if said, _ = asNobody(bin, filepath.Join(dir, "open"), filepath.Join(dir, "other")); strings.Count(said, "no lock was taken") != 1 {
		t.Errorf("of locks:\n%s", said)
	}
	// probe has no result that would tell.
	if said, _ = asNobody(bin, "probe", filepath.Join(dir, "closed/v")); !strings.HasPrefix(said, "fastlabel: ") || !strings.HasSuffix(said, ": permission denied\n") {
		t.Errorf("probe says %q", said)
	}
}

// asNobody runs the command as a user without rights.
func asNobody(bin string, args ...string) (said string, code int) {
	cmd := exec.Command(bin, args...)
	cmd.Env = []string{"FASTLABEL_TEST_AS=real"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	text, _ := cmd.CombinedOutput()
	return string(text), cmd.ProcessState.ExitCode()
}

// One who names a link is told that it was taken for itself.
func TestLink(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	treetest.Must(t, os.Mkdir("dir", 0o700))
	treetest.Must(t, os.WriteFile("file", nil, 0o600))
	for name, to := range map[string]string{"link": "dir", "dangling": "none", "image": "file"} {
		treetest.Must(t, os.Symlink(to, name))
	}
	for line, want := range map[string]string{
		"link":        "link: it is a symbolic link: only the link was labelled; write link/ for the directory\n",
		"verify link": "link: it is a symbolic link: only the link was looked at; write link/ for the directory\n",
		"probe link":  "link: it is a symbolic link: only the link was looked at; write link/ for the directory\n",
		"image":       "image: it is a symbolic link: only the link was labelled\n",
		"link/":       "",
		"probe link/": "",
		"dangling":    "",
		"dir":         "",
	} {
		text := transcript(real(), calls(line))
		if strings.Contains(text, "symbolic") != (want != "") || !strings.Contains(text, want) {
			t.Errorf("%s: %s", line, text)
		}
	}
}

// The list of -v comes before the line that sums it up, also where both go to
// one file.
func TestListFirst(t *testing.T) {
	var both bytes.Buffer
	fake().run(t.Context(), nil, &both, &both, []string{"-v", "/changes"})
	if lines := strings.Split(both.String(), "\n"); len(lines) != 5 || !strings.HasPrefix(lines[3], "fastlabel: /changes: 5 entries") {
		t.Errorf("%q", lines)
	}
}
