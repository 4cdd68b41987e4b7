// SPDX-License-Identifier: Apache-2.0

package mounts

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/fastlabel/fastlabel/test/treetest"
)

// TestVolumeRemade: another filesystem on the same device, at the same path, with a root of the
// same number, is another volume.
func TestVolumeRemade(t *testing.T) {
	for kind, mkfs := range map[string][]string{
		"ext4": {"mkfs.ext4", "-q", "-F"},
		"xfs":  {"mkfs.xfs", "-q", "-f"}, // its number for statfs is that of the device
	} {
		treetest.Need(t, "root", kind)
		image, point := filepath.Join(t.TempDir(), "image"), t.TempDir()
		treetest.Must(t, os.WriteFile(image, nil, 0o600), os.Truncate(image, 320<<20))
		seen := map[Volume]bool{}
		for range 2 {
			for _, args := range [][]string{append(mkfs, image), {"mount", "-o", "loop", image, point}} {
				treetest.Output(t, exec.Command(args[0], args[1:]...))
			}
			v, err := VolumeAt(point)
			treetest.Must(t, err)
			seen[v.ByAnyMount()] = true
			treetest.Must(t, unix.Unmount(point, 0))
		}
		if len(seen) != 2 {
			t.Errorf("%s: the two are one: %+v", kind, seen)
		}
	}
}

// TestVolumeAt: a link is another volume than what it leads to, and one path to a
// directory is as good as another; a directory made anew, or mounted a second time, is another volume.
func TestVolumeAt(t *testing.T) {
	treetest.Need(t, "root")
	root, link := t.TempDir(), filepath.Join(t.TempDir(), "link")
	treetest.Must(t, os.Symlink(root, link))
	at := func(path string) Volume {
		v, err := VolumeAt(path)
		if err != nil || v == (Volume{}) {
			t.Errorf("%s: %+v, %v", path, v, err)
		}
		return v
	}
	dir := at(root)
	if dir != at(root+"/") || dir != at(link+"/.") || dir == at(link) {
		t.Errorf("%+v, %+v, %+v, but the link is %+v", dir, at(root+"/"), at(link+"/."), at(link))
	}
	treetest.Must(t, os.Rename(root, root+".old"))
	treetest.Must(t, os.Mkdir(root, 0o700))
	made := at(root)
	if made == dir || at(root+".old") != dir {
		t.Errorf("%+v, which was %+v, %+v", made, dir, at(root+".old"))
	}
	treetest.Must(t, unix.Mount(root, root, "", unix.MS_BIND, ""))
	defer unix.Unmount(root, unix.MNT_DETACH) // the namespace of the test goes with it
	if at(root) == made {
		t.Errorf("%+v is also its second mount", made)
	}
	if v, err := VolumeAt("a\x00b"); err == nil {
		t.Errorf("%+v", v)
	}
}
