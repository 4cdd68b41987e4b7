// SPDX-License-Identifier: Apache-2.0

//go:build linux

package inside

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/fastlabel/fastlabel/test/treetest"
)

const (
	oldLabel = "system_u:object_r:user_home_t:s0"
	kept     = "system_u:object_r:kept_t:s0" // see local
)

// ended is how the installed command ended in a domain.
type ended struct {
	code int
	said string // errors and notes, without paths
	way  string
}

// in runs the installed command in a domain, at s0.
func in(t *testing.T, domain string, args ...string) ended {
	t.Helper()
	cmd := exec.Command(installed, append([]string{"--json"}, args...)...)
	// Not a pipe: it would have this test's categories, which not all may write.
	out, err := os.OpenFile("/volumes/tmpfs/out", os.O_CREATE|os.O_TRUNC|os.O_WRONLY|os.O_APPEND, 0o600)
	treetest.Must(t, err)
	cmd.Stdout, cmd.Stderr = out, out
	start(t, "system_u:system_r:"+domain+":s0", cmd)
	var exit *exec.ExitError
	if err := cmd.Wait(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	text, err := os.ReadFile(out.Name())
	treetest.Must(t, errors.Join(err, out.Close()))
	e := ended{code: cmd.ProcessState.ExitCode()}
	for line := range strings.Lines(string(text)) {
		var m struct{ Text, Way, Op string }
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			e.said += line // a shell's, or a crash
			continue
		}
		e.way += m.Way
		if text := strings.TrimPrefix(m.Op+": "+m.Text+"\n", ": "); m.Text != "" && !strings.Contains(e.said, text) {
			e.said += text
		}
	}
	return e
}

// others makes a volume of every kind of entry that belongs to another user and
// is closed to all others. It has more entries than are labeled without a clone.
func others(t *testing.T, dir string) string {
	t.Helper()
	root := home(t, dir)
	treetest.Build(t, mkdir(t, root, "devices"), treetest.Text(t, "default label="+oldLabel+"\ndir .\nchar c 1:3\nblock b 7:1\n"))
	many := mkdir(t, root, "many")
	for i := range 600 {
		treetest.Must(t, os.WriteFile(filepath.Join(many, strconv.Itoa(i)), nil, 0o600))
	}
	treetest.Label(t, many, oldLabel)
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			err = os.Chmod(path, 0o700)
		}
		return errors.Join(err, os.Lchown(path, 1000, 1000))
	})
	treetest.Must(t, err)
	return root
}

// TestConfined: with the module of deploy/selinux a confined engine labels as an
// unconfined one does. The control is a domain without its rights.
func TestConfined(t *testing.T) {
	setUp(t)
	each(t, func(t *testing.T, dir string) {
		root := others(t, dir)
		if e := in(t, "bare_t", "--label", labelA, root); e.code == 0 {
			t.Errorf("without its rights: %+v", e)
		}
		for path, got := range treetest.Read(t, root) {
			if got != oldLabel {
				t.Errorf("%s has %s", path, got)
			}
		}
		if e := in(t, "fastlabel_t", "--exact", "--label", labelA, root); e.code != 0 || e.said != "" || !strings.HasPrefix(e.way, "clone/") {
			t.Errorf("%+v", e)
		}
		all(t, root, labelA)
		// Another user's entry is taken in.
		treetest.Must(t, os.WriteFile(filepath.Join(root, "admins"), nil, 0o644))
		if e := in(t, "fastlabel_t", "--label", labelA, root); e.code != 0 || e.said != "" {
			t.Errorf("%+v", e)
		}
		all(t, root, labelA)
	})
	t.Run("service", func(t *testing.T) {
		// What systemd does with it: a transition, and a lock for all.
		if got := labelOf(t, installed); got != "system_u:object_r:fastlabel_exec_t:s0" {
			t.Errorf("%s has %s", installed, got)
		}
		for _, c := range []struct{ from, class, to string }{
			{"system_u:system_r:init_t:s0 system_u:object_r:fastlabel_exec_t:s0", "process", "system_u:system_r:fastlabel_t:s0"},
			{"unconfined_u:unconfined_r:unconfined_t:s0 system_u:object_r:fastlabel_exec_t:s0", "process", "unconfined_u:unconfined_r:unconfined_t:s0"},
		} {
			if got := created(t, c.from, c.class); got != c.to {
				t.Errorf("%s begins %s, not %s", c.from, got, c.to)
			}
		}
		for domain, right := range map[string]string{"init_t": "execute", "container_engine_t": "execute_no_trans"} {
			if !granted(t, "system_u:system_r:"+domain+":s0", labelOf(t, installed), "file", right) {
				t.Errorf("%s may not run it", domain)
			}
		}
		treetest.Must(t, os.RemoveAll("/run/fastlabel"))
		label(t, 0, "--label", labelA, others(t, t.TempDir())) // by an administrator
		if got := labelOf(t, "/run/fastlabel"); !strings.Contains(got, ":fastlabel_run_t:") {
			t.Errorf("the locks have %s", got)
		}
	})
}

// TestDenied: what the policy refuses for other reasons is told too.
func TestDenied(t *testing.T) {
	setUp(t)
	const usr = "system_u:object_r:usr_t:s0"
	cases := []struct {
		name, domain string
		from, one    string // what all have, and one file; "" for the same
		to           string
		code         int
		says         string
	}{
		{"type", "fastlabel_t", oldLabel, "", "system_u:object_r:user_home_t:s0:c1,c2", 1, "no relabelto on system_u:object_r:user_home_t:s0:c1,c2 (file)"},
		{"both", "fastlabel_t", oldLabel, usr, "system_u:object_r:etc_t:s0", 1, "no relabelfrom on " + usr + " and no relabelto on system_u:object_r:etc_t:s0 (file)"},
		{"categories", "narrow_t", oldLabel, "", labelA, 1, "no relabelto on " + labelA + " (file)"},
		{"user", "same_user_t", oldLabel, "unconfined_u:object_r:user_home_t:s0", labelA, 1, "no relabelfrom on unconfined_u:object_r:user_home_t:s0 (file)"},
		{"seal", "same_user_t", oldLabel, "", shared, 0, "the top directory keeps " + oldLabel + " (permission denied)"},
		{"validatetrans", "fastlabel_t", oldLabel, kept, labelA, 1, "SELinux lets no file go from " + kept + " to " + labelA + " (validatetrans)"},
		// A runtime's domain, with the policy's own rights.
		{"runtime", "container_engine_t", labelB, "", labelA, 0, ""},
		{"runtime, strange file", "container_engine_t", labelB, "system_u:object_r:etc_t:s0", labelA, 1, "relabelfrom on system_u:object_r:etc_t:s0"},
		{"runtime, strange volume", "container_engine_t", oldLabel, "", labelA, 1, "statx: permission denied"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			root := home(t, fresh(t, "xfs"))
			label(t, 0, "--label", c.from, root)
			if c.one != "" {
				give(t, filepath.Join(root, "a/f3"), c.one)
			}
			e := in(t, c.domain, "--label", c.to, root)
			t.Logf("%+v", e)
			if e.code != c.code || !strings.Contains(e.said, c.says) {
				t.Errorf("exit code %d, not %d, or no %q", e.code, c.code, c.says)
			}
			if got := labelOf(t, root); (got == c.to) != (c.code == 0) {
				t.Errorf("the root has %s", got)
			}
			if c.one != kept { // one that may, resumes
				label(t, 0, "--label", labelA, root)
				all(t, root, labelA)
			}
		})
	}
}

// give gives one entry a label.
func give(t *testing.T, path, label string) {
	t.Helper()
	if err := unix.Lsetxattr(path, treetest.Attr, []byte(label), 0); err != nil {
		t.Fatal(&fs.PathError{Op: "lsetxattr", Path: path, Err: err})
	}
}

// created asks the policy what comes of it.
func created(t *testing.T, contexts, class string) string {
	t.Helper()
	index, err := os.ReadFile("/sys/fs/selinux/class/" + class + "/index")
	treetest.Must(t, err)
	answer, err := asked(t, "create", contexts+" "+strings.TrimSpace(string(index)))
	treetest.Must(t, err)
	return answer
}
