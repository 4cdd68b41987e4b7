// SPDX-License-Identifier: Apache-2.0

//go:build linux

package inside

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/fastlabel/fastlabel/test/treetest"
)

// TestAccess: a process in a container's domain is denied the volume before,
// and reads it when it is labelled for it; other levels read only what is
// shared. The control is a volume that nobody labelled: it stays closed.
func TestAccess(t *testing.T) {
	for _, c := range []struct {
		name, label string
		a, b        bool // who reads it
	}{
		{"private", labelA, true, false},
		{"shared", shared, true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			each(t, func(t *testing.T, dir string) {
				root, control := grow(t, dir), grow(t, mkdir(t, dir, "control"))
				// A file that is reached by another way than through the volume.
				beside := filepath.Join(dir, "beside")
				treetest.Must(t, os.Link(filepath.Join(root, "top"), beside))
				paths := []string{".", "top", "a", "a/f7", "a/b/c", "a/b/c/deep", "../beside"}
				for _, p := range paths {
					may(t, false, domainA, filepath.Join(root, p))
					may(t, false, domainB, filepath.Join(root, p))
				}
				label(t, 0, "--label", c.label, root)
				all(t, root, c.label)
				for _, p := range paths {
					may(t, c.a, domainA, filepath.Join(root, p))
					may(t, c.b, domainB, filepath.Join(root, p))
				}
				for _, p := range paths[:6] {
					may(t, false, domainA, filepath.Join(control, p))
				}
			})
		})
	}
}

func mkdir(t *testing.T, dir, name string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	treetest.Must(t, os.Mkdir(path, 0o755))
	return path
}
