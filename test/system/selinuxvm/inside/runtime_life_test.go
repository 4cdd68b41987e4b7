// SPDX-License-Identifier: Apache-2.0

//go:build linux

package inside

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opencontainers/selinux/go-selinux"

	"github.com/fastlabel/fastlabel/test/treetest"
)

// unlabeled is what the kernel gives an entry without a label.
const unlabeled = "system_u:object_r:unlabeled_t:s0"

// supplied is what an installer puts on a volume, with the labels that come of
// themselves.
const supplied = `
file top
dir a/b/c
file a/b/c/deep
file a/f%d x40
link a/link f0
hardlink a/hard a/f1
fifo a/fifo
`

// TestRuntimeLife is a volume's life: a filesystem is made and filled, and
// nothing on it has a label that containers may use; fastlabel labels it, as a
// privileged installer would; a pod with a fixed level starts, and starts again.
// CRI-O's comparison then skips it, and before did not.
func TestRuntimeLife(t *testing.T) {
	fresh := func(t *testing.T, image, dir string) {}
	cases := []struct {
		name, kind string
		engine     engine
		change     func(t *testing.T, image, dir string)
	}{
		{"filled here", "ext4", runc, fresh},
		{"filled here", "xfs", crun, fresh},
		{"filled without SELinux", "ext4", podmanCrun, strip},
	}
	for _, c := range cases {
		t.Run(c.name+"/"+c.kind, func(t *testing.T) {
			root, image := format(t, c.kind)
			if got := labelOf(t, root); got != unlabeled {
				t.Fatalf("the root of a new filesystem has %s", got)
			}
			treetest.Build(t, root, treetest.Text(t, supplied))
			c.change(t, image, root)
			entries := treetest.Read(t, root)
			for path, label := range entries {
				if !strings.Contains(label, ":unlabeled_t:") {
					t.Fatalf("%s has %s", path, label)
				}
			}
			pod := container{engine: c.engine, level: levelA, volume: root}
			denied(t, pod)
			label(t, 4, "probe", "--label", labelA, root)
			passes(t, false, root, labelA)

			label(t, 0, "--label", labelA, root)
			all(t, root, labelA)
			label(t, 0, "probe", "--label", labelA, root)
			for range 2 {
				passes(t, true, root, labelA)
				passes(t, true, root, fileType+"s0:c2,c1") // as a pod may write it
				passes(t, false, root, labelB)
				pod.run(t).used(t, pod, len(entries))
				entries = treetest.Read(t, root) // with what it made
			}
			all(t, root, labelA)
		})
	}
}

// passes fails the test unless CRI-O would skip the volume, or not: where a
// pod has try-skip-volume-selinux-label, it compares the label of the root alone.
func passes(t *testing.T, want bool, root, label string) {
	t.Helper()
	asked, err := selinux.CanonicalizeContext(label)
	if err != nil {
		t.Fatal(err)
	}
	got, err := selinux.FileLabel(root)
	if err != nil {
		t.Fatal(err)
	}
	if (got == asked) != want {
		t.Errorf("CRI-O compares %s with %s of the root, and skips it: %v, not %v", asked, got, !want, want)
	}
}

// format makes a filesystem and mounts it. Nobody has given its root a label.
func format(t *testing.T, kind string) (dir, image string) {
	t.Helper()
	above, err := os.MkdirTemp("/volumes/tmpfs", "life-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(above) })
	image, dir = filepath.Join(above, "image"), mkdir(t, above, "volume")
	if err := os.WriteFile(image, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(image, 300<<20); err != nil { // the least that xfsprogs takes
		t.Fatal(err)
	}
	does(t, "", "mkfs."+kind, "-q", image)
	does(t, "", "mount", "-o", "loop", image, dir)
	t.Cleanup(func() { does(t, "", "umount", dir) })
	if kind == "ext4" {
		if err := os.Remove(filepath.Join(dir, "lost+found")); err != nil {
			t.Fatal(err)
		}
	}
	return dir, image
}

// strip takes the labels off an ext4 volume, as no kernel with SELinux does: it
// is then as if filled where there is none.
func strip(t *testing.T, image, dir string) {
	t.Helper()
	var commands strings.Builder
	for path := range treetest.List(t, dir) {
		fmt.Fprintf(&commands, "ea_rm \"%s\" %s\n", path, treetest.Attr)
	}
	does(t, "", "umount", dir)
	does(t, commands.String(), "debugfs", "-w", "-f", "-", image)
	does(t, "", "mount", "-o", "loop", image, dir)
	for path, label := range treetest.Read(t, dir) {
		if label != unlabeled {
			t.Fatalf("%s has %s", path, label)
		}
	}
}

// does runs a program of the machine's.
func does(t *testing.T, stdin string, args ...string) {
	t.Helper()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdin = strings.NewReader(stdin)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", cmd, err, out)
	}
}
