// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/fastlabel/fastlabel/test/treetest"
)

// TestUndoPage runs the commands of docs/undo.md on a volume with names that getfattr
// escapes, and some that look like its output. In the end each entry has its old label;
// one that had none keeps the new label.
func TestUndoPage(t *testing.T) {
	treetest.Need(t, "root", "plain", "ext4", "getfattr")
	dir := treetest.Fresh(t, "ext4")
	root := filepath.Join(dir, "a volume\n\\012")
	names := []string{
		"plain", "a b", " lead", "trail ", "new\nline", "two\n\nlines", "\n", "cr\rlf", "tab\t", `back\slash`, `\012`, `\\`,
		"# file: plain", `security.selinux="x"`, "#", "=", `"`, "'", "$HOME", "*", "-h", "--help", "naïve", "bad\xff", "\x01\x7f\x1b[31m",
		strings.Repeat("n", 255),
	}
	label := func(path, value string) {
		treetest.Must(t, unix.Lsetxattr(path, treetest.Attr, []byte(value), 0))
	}
	n := 0
	for _, at := range []string{"", "dir", "dir/two\nlines"} {
		at = filepath.Join(root, at)
		treetest.Must(t, os.Mkdir(at, 0o700))
		for _, name := range append(names, "link", "fifo") {
			path := filepath.Join(at, name)
			err := error(nil)
			switch name {
			case "link":
				err = os.Symlink("/etc/passwd", path)
			case "fifo":
				err = unix.Mkfifo(path, 0o600)
			default:
				err = os.WriteFile(path, nil, 0o600)
			}
			treetest.Must(t, err)
			n++
			label(path, fmt.Sprintf("system_u:object_r:old_t:s0:c%d", n))
		}
		label(at, "system_u:object_r:dir_t:s0")
	}
	treetest.Must(t, os.WriteFile(filepath.Join(root, "none"), nil, 0o600))
	outside := treetest.Snapshot(t, "/etc/passwd")
	want := treetest.Read(t, root)

	tools := filepath.Dir(treetest.Command(t))
	page := blocks(readText(t, "../../docs/undo.md"), "sh")
	page = strings.NewReplacer("/var/lib/pv", `"$0"`, "/root/pv.labels", `"$1"`).Replace(page)
	commands := strings.Split(strings.TrimSpace(page), "\n")
	for i, command := range commands {
		if i == len(commands)-1 {
			for path, has := range treetest.Read(t, root) {
				if has == want[path] {
					t.Errorf("before %s: %q still has %s", command, path, has)
				} else if want[path] == treetest.None {
					want[path] = has
				}
			}
		}
		cmd := exec.Command("sh", "-c", command, root, filepath.Join(dir, "labels"))
		cmd.Env = append(os.Environ(), "PATH="+tools+":"+os.Getenv("PATH"))
		treetest.Output(t, cmd)
	}
	if d := treetest.Diff(want, treetest.Read(t, root)); len(d) > 0 || len(commands) != 4 {
		t.Errorf("after %d commands:\n%s", len(commands), strings.Join(d, "\n"))
	}
	if d := treetest.Diff(outside, treetest.Snapshot(t, "/etc/passwd")); len(d) > 0 {
		t.Error(d)
	}
}
