// SPDX-License-Identifier: Apache-2.0

//go:build linux

package inside

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/fastlabel/fastlabel/test/treetest"
)

// TestCreated: what a container creates in its volume has the volume's label.
// That is the kernel's rule for a new file: type of the directory, user and
// level of the process. So what an administrator creates there has the type
// alone right, and a container of another level cannot read it where the level
// is wider; a second run gives it the label.
func TestCreated(t *testing.T) {
	each(t, func(t *testing.T, dir string) {
		root := grow(t, dir)
		label(t, 0, "--label", labelA, root)
		if e := as(t, domainB, "create", filepath.Join(root, "b")); e == 0 {
			t.Error("another container may create there")
		}
		if e := as(t, domainA, "create", filepath.Join(root, "a/b/new")); e != 0 {
			t.Fatal(e)
		}
		all(t, root, labelA)

		treetest.Must(t, os.WriteFile(filepath.Join(root, "admins"), nil, 0o644))
		if got, want := labelOf(t, filepath.Join(root, "admins")), "unconfined_u:object_r:container_file_t:s0"; got != want {
			t.Errorf("an administrator's file has %s, not %s", got, want)
		}
		label(t, 4, "verify", "--label", labelA, root)
		label(t, 0, "--label", labelA, root)
		all(t, root, labelA)
	})
}

// TestWriters: a container of the old label and one of the new create and
// remove all over the tree while it is relabelled. Nothing is left without
// the new label. The control is that both got to write.
func TestWriters(t *testing.T) {
	each(t, func(t *testing.T, dir string) {
		root := grow(t, dir)
		treetest.Build(t, mkdir(t, root, "more"), treetest.Text(t, "dir d%d x30\nfile d0/f%d x500"))
		label(t, 0, "--label", labelA, root)
		until := filepath.Join(dir, "until")
		treetest.Must(t, os.WriteFile(until, nil, 0o644))
		writers := map[string]*exec.Cmd{domainA: confine("write", root, until, "old"), domainB: confine("write", root, until, "new")}
		for context, cmd := range writers {
			start(t, context, cmd)
		}
		time.Sleep(300 * time.Millisecond) // the old one writes before the run and during it
		label(t, 0, "--label", labelB, root)
		time.Sleep(time.Second) // the new one writes afterwards too
		treetest.Must(t, os.Remove(until))
		for context, cmd := range writers {
			if err := cmd.Wait(); err != nil {
				t.Errorf("the writer in %s: %v", context, err)
			}
		}
		all(t, root, labelB)
		label(t, 0, "verify", "--label", labelB, root)
	})
}
