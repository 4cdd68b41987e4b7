// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/fastlabel/fastlabel/test/treetest"
)

// TestTreeAt: what was opened is labelled, and not what lies at its path by now. The caller's
// descriptor stays open, and may be one that names a file only.
func TestTreeAt(t *testing.T) {
	dir := on(t, "tmpfs")
	for name, flags := range map[string]int{"read": os.O_RDONLY, "path": unix.O_PATH} {
		root := grow(t, mkdir(t, dir, name), plain)
		for _, path := range []string{root, root + "/f03"} {
			label := map[bool]string{true: newLabel, false: labelA}[path == root]
			f, err := os.OpenFile(path, flags, 0)
			treetest.Must(t, err)
			defer f.Close()
			treetest.Must(t, os.Rename(path, path+".moved"))
			treetest.Must(t, os.WriteFile(path, nil, 0o600))
			treetest.Set(t, filepath.Dir(path), filepath.Base(path), oldLabel)
			r, err := TreeAt(t.Context(), f, label, nil)
			if err != nil || !r.Complete || r.Root != path || labelOf(t, path+".moved") != label || labelOf(t, path) != oldLabel {
				t.Errorf("%s: %+v, %v", path, r, err)
			}
			if _, err := f.Stat(); err != nil {
				t.Error(err)
			}
			treetest.Must(t, os.Remove(path))
			treetest.Must(t, os.Rename(path+".moved", path))
		}
		if n := len(bearing(t, root, newLabel)); n != len(treetest.Read(t, root))-1 {
			t.Errorf("%s: %d labelled", name, n)
		}
	}
	f, err := os.Open(dir)
	treetest.Must(t, err)
	f.Close()
	if r, err := TreeAt(t.Context(), f, newLabel, nil); err == nil {
		t.Errorf("a closed file: %+v", r)
	}
}
