// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fastlabel/fastlabel/test/treetest"
)

const (
	etcLabel = "system_u:object_r:etc_t:s0"
	etcTree  = "default label=" + etcLabel + "\ndir .\nfile f%02d x20\ndir d\nfile d/g%02d x20\nlink l f01\nfile none label=-\n"
)

// says runs the command and returns all that it prints.
func says(t *testing.T, code int, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	if got := real().run(t.Context(), strings.NewReader(""), &out, &out, args); got != code {
		t.Errorf("fastlabel %q: exit %d, not %d\n%s", args, got, code, out.String())
	}
	return out.String()
}

// etcRoot builds a tree in which all but one entry has etcLabel.
func etcRoot(t *testing.T) (root string) {
	t.Helper()
	dir := t.TempDir()
	setLabel(t, dir, etcLabel) // or skip
	root = filepath.Join(dir, "pv")
	treetest.Build(t, root, treetest.Text(t, etcTree))
	return root
}

// TestRestorecon: PATH alone without -R, the type alone without -F; what would be
// written is said and is exit code 4; and what is wrong with the rules begins nothing.
func TestRestorecon(t *testing.T) {
	root := etcRoot(t)
	contexts := filepath.Join(t.TempDir(), "file_contexts")
	write := func(rules string) {
		treetest.Must(t, os.WriteFile(contexts, []byte(strings.ReplaceAll(rules, "@", root)), 0o600))
	}
	write("@(/.*)? unconfined_u:object_r:usr_t:s0\n@/d(/.*)? <<none>>\n")
	list := contexts + ".list"
	treetest.Must(t, os.WriteFile(list, []byte(root+"/f1[0-9]\n"), 0o600))
	for _, c := range []struct {
		code int
		args string
		says string
	}{
		{4, "-n -v", "would relabel \"" + root + "\" from system_u:object_r:etc_t:s0 to system_u:object_r:usr_t:s0\n"},
		{0, "", ": 1 entry, 1 written, 0 failed, "},
		{4, "-R -n", ": 44 entries, 22 to write, 1 right, 21 skipped, 0 failed, "},
		{0, "-r -m -T 1", ": 44 entries, 22 written, 1 right, 21 skipped, 0 failed, "},
		{0, "-R -n", ": 44 entries, 0 to write, 23 right, 21 skipped, 0 failed, "},
		{0, "-R -n -e " + root + "/gone", ": exclude " + root + "/gone: no such file or directory; it is ignored\n"},
		{0, "-R -n -e /proc", " 0 to write, "},
		{0, "-R -e " + root + "/f01 -F -v", "relabelled \"" + root + "/f02\" from system_u:object_r:usr_t:s0 to unconfined_u:object_r:usr_t:s0\n"},
		{0, "-i -R -F -e " + root + "/f01 " + root + "/gone", "22 right, 22 skipped"},
		{0, "-R -v -e " + root, root + "\": skipped: it is excluded, or lies in what is\n"},
		{0, "-n -e " + filepath.Dir(root), ": 1 entry, 0 to write, 1 skipped, 0 failed, "},
		{2, root + "/gone", "/gone: no such file or directory; nothing was begun"},
		{2, root + "/gone*", "/gone*: no such file or directory; nothing was begun"},
		{0, "-n -i " + root + "/gone*", ": 1 entry, "},
		{0, "-n " + root + "/{d,l,non?}", root + "/none: 1 entry, "},
		{0, "-n -f " + list, root + "/f19: 1 entry, 0 to write, "},
	} {
		expects(t, real(), "restorecon --contexts "+contexts+" "+c.args+" "+root, c.code, c.says)
	}
	if has := treetest.Read(t, root)["f01"]; has != "system_u:object_r:usr_t:s0" {
		t.Errorf("what was excluded has %q", has)
	}
	write("@/f01 -- u:object_r:usr_t:s0\n@/f01 -- u:object_r:etc_t:s0\n@/f.* -- u:object_r:usr_t:s0\n@/f01 -d u:object_r:etc_t:s0\n@/f.* -- u:object_r:etc_t:s0\n@/f01 -- u:object_r:etc_t:s0\n")
	if text := says(t, 4, "restorecon", "-R", "-n", "--contexts", contexts, root); strings.Count(text, "with another context") != 2 ||
		!strings.Contains(text, contexts+":2: "+root+"/f01 is also in line 1, with another context; of exact paths the first line counts, of others the last\n") ||
		!strings.Contains(text, contexts+":5: "+root+"/f.* is also in line 3, with another context; ") {
		t.Errorf("two lines for the same paths: %s", text)
	}
	before := treetest.Read(t, root)
	for _, rule := range []string{
		"(/.*)? usr_t", "(/.*)? object_r:usr_t", "(/.*)? :::", "(/.*)? <<nonee>>",
		"(/.*)? gen_context(system_u:object_r:usr_t,s0)", "(/.*)? system_u:object_r:usr_t:s0:c99999",
	} {
		write("@ system_u:object_r:usr_t:s0\n@" + rule + "\n")
		if text := says(t, 2, "restorecon", "-R", "-F", "--contexts", contexts, root); !strings.Contains(text, contexts+":2: ") || !strings.Contains(text, "nothing was begun") {
			t.Errorf("%s: %s", rule, text)
		}
	}
	write("@(/.*)? system_u:object_r:etc_t:s0\n@/f0(?R) -- system_u:object_r:usr_t:s0\n")
	if text := says(t, 1, "restorecon", "-R", "-n", "--contexts", contexts, root); !strings.Contains(text, ", 10 failed, ") || !strings.Contains(text, contexts+":2: "+root+"/f0(?R): ") {
		t.Errorf("a pattern that cannot be used: %s", text)
	}
	if after := treetest.Read(t, root); !maps.Equal(after, before) {
		t.Errorf("labels were %v and are %v", before, after)
	}
}

func TestOnly(t *testing.T) {
	root := etcRoot(t)
	treetest.Must(t, os.Remove(filepath.Join(root, "none"))) // it has no label, of which a part could stay
	setLabel(t, filepath.Join(root, "f01"), "unconfined_u:object_r:tmp_t:s0:c1")
	if text := says(t, 0, "--only", "type", "--only", "level", "-t", "usr_t", "-l", "s0:c7", root); !strings.Contains(text, "43 entries, 43 written, 0 failed, ") || !strings.Contains(text, "; label *:*:usr_t:s0:c7\n") {
		t.Error(text)
	}
	if has := treetest.Read(t, root)["f01"]; has != "unconfined_u:object_r:usr_t:s0:c7" {
		t.Error(has)
	}
	for args, text := range map[string]string{
		"--only colour":           "--only colour: not one of",
		"--only type --skip root": "--only and --skip exclude each other",
	} {
		expects(t, real(), args+" "+root, 2, text)
	}
}

// TestVerifyAfterRules: after a run by rules, or of a part, verify and probe say what the labels
// are, though no label is trusted for them.
func TestVerifyAfterRules(t *testing.T) {
	treetest.Need(t, "root") // to see what a run left
	for _, how := range []string{"restorecon -R --contexts FC", "--only type -t container_file_t"} {
		root := etcRoot(t)
		treetest.Must(t, os.Remove(filepath.Join(root, "none")))
		contexts := filepath.Join(t.TempDir(), "fc")
		treetest.Must(t, os.WriteFile(contexts, []byte(root+"(/.*)? system_u:object_r:container_file_t:s0\n"), 0o600))
		says(t, 0, append(strings.Fields(strings.Replace(how, "FC", contexts, 1)), root)...)
		if text := says(t, 0, "verify", "-v", root); strings.Contains(text, "relabel") || !strings.Contains(text, ", 0 differ, 43 right, ") {
			t.Errorf("%s: %s", how, text)
		}
		for _, depth := range []string{"root", "top"} {
			expects(t, real(), "probe --depth "+depth+" "+root, 4, "not known: the top directory has this label, but ")
		}
		setLabel(t, filepath.Join(root, "f01"), etcLabel)
		if text := says(t, 4, "verify", "-v", root); strings.Count(text, "would relabel") != 1 || !strings.Contains(text, ", 1 differs, 42 right, ") {
			t.Errorf("%s, and then one by hand: %s", how, text)
		}
	}
}
