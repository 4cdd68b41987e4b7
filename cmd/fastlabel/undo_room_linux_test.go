// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/seclabel"
	"github.com/fastlabel/fastlabel/test/treetest"
)

// TestRecordNoRoom: where the record has no more room, because the disk is full or
// files may not be so large, the run ends and says so, and what was labelled until
// then is on record.
func TestRecordNoRoom(t *testing.T) {
	treetest.Need(t, "root", "tmpfs")
	bin := treetest.Command(t)
	for name, c := range map[string]struct {
		script string // runs "$@" with a record in the directory $0
		says   string
	}{
		"disk": {`mount -t tmpfs -o size=64k none "$0" && exec "$@"`, "no space left on device"},
		"file": {`ulimit -f 96 && exec "$@"`, "file too large"}, // of 512 bytes, or 1,024
	} {
		t.Run(name, func(t *testing.T) {
			root, file := undoRoot(t)
			records := filepath.Dir(file) + "/records"
			if err := os.Mkdir(records, 0o700); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				_ = unix.Unmount(records, unix.MNT_DETACH) // it may be none
			})
			growLevels(t, root)
			before := treetest.Read(t, root)

			file = filepath.Join(records, "record")
			cmd := exec.Command("sh", "-c", c.script, records, bin, "--record", file, root)
			out, err := cmd.CombinedOutput()
			if code := cmd.ProcessState.ExitCode(); code != 1 || !strings.Contains(string(out), c.says) || !strings.Contains(string(out), file) {
				t.Errorf("exit %d, %v\n%s", code, err, out)
			}
			says(t, 4, "probe", root)
			written := 0
			for _, label := range treetest.Read(t, root) {
				if label == seclabel.Default {
					written++
				}
			}
			if written == 0 || written == len(before) {
				t.Errorf("%d of %d written: it proves little", written, len(before))
			}
			_, command, _ := strings.Cut(string(out), "the record is cut short; to put back what it holds: ")
			command, _, _ = strings.Cut(command, "\n")
			restore := exec.Command("sh", "-c", `fastlabel() { "$0" "$@"; }; `+command, bin)
			if text, err := restore.CombinedOutput(); err != nil || command == "" || strings.Contains(string(out), "to put the labels back") {
				t.Errorf("%q: %v\n%s\n%s", command, err, text, out)
			}
			if d := treetest.Diff(before, treetest.Read(t, root)); len(d) > 0 {
				t.Error(d)
			}
		})
	}
}

// growLevels adds levels of directories, each recorded by itself, of entries whose
// names do not compress: 2,000, and 190 kB.
func growLevels(t *testing.T, root string) {
	t.Helper()
	random := rand.New(rand.NewPCG(1, 1))
	text, at := strings.Builder{}, ""
	fmt.Fprintf(&text, "default label=%s\ndir .\n", undoOld)
	for level := range 20 {
		at += fmt.Sprintf("level%d", level)
		fmt.Fprintf(&text, "dir %s\n", at)
		at += "/"
		for range 100 {
			fmt.Fprintf(&text, "file %s", at)
			for range 6 {
				fmt.Fprintf(&text, "%016x", random.Uint64())
			}
			text.WriteString("\n")
		}
	}
	treetest.Build(t, filepath.Join(root, "levels"), treetest.Text(t, text.String()))
}
