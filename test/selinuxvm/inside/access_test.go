// SPDX-License-Identifier: Apache-2.0

//go:build linux

package inside

import (
	"os"
	"path/filepath"
	"testing"
)

// TestAccess: a process in a container's domain is denied the volume before,
// and reads it when it is labelled for it; other levels read only what is
// shared. The control is a volume that nobody labelled: it stays closed.
func TestAccess(t *testing.T) {
	cases := []struct {
		name, label string
		a, b        bool // who reads it
	}{
		{"private", labelA, true, false},
		{"shared", shared, true, true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			each(t, func(t *testing.T, dir string) {
				root := grow(t, dir)
				control := grow(t, mkdir(t, dir, "control"))
				paths := []string{".", "top", "a", "a/f7", "a/b/c", "a/b/c/deep"}
				for _, p := range paths {
					may(t, false, domainA, filepath.Join(root, p))
					may(t, false, domainB, filepath.Join(root, p))
				}
				label(t, 0, "--label", c.label, root)
				all(t, root, c.label)
				for _, p := range paths {
					may(t, c.a, domainA, filepath.Join(root, p))
					may(t, c.b, domainB, filepath.Join(root, p))
					may(t, false, domainA, filepath.Join(control, p))
				}
			})
		})
	}
}

func mkdir(t *testing.T, dir, name string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.Mkdir(path, 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}
