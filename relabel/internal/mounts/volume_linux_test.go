// SPDX-License-Identifier: Apache-2.0

package mounts

import (
	"os"
	"path/filepath"
	"testing"
)

// TestVolumeAt: a link is another volume than what it leads to, and one path to a
// directory is as good as another; a directory made anew is another volume.
func TestVolumeAt(t *testing.T) {
	root, link := t.TempDir(), filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(root, link); err != nil {
		t.Fatal(err)
	}
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
	if err := os.Rename(root, root+".old"); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(root, 0o700); err != nil {
		t.Fatal(err)
	}
	if at(root) == dir || at(root+".old") != dir {
		t.Errorf("%+v, which was %+v, %+v", at(root), dir, at(root+".old"))
	}
	if v, err := VolumeAt("a\x00b"); err == nil {
		t.Errorf("%+v", v)
	}
}
