// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"errors"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/fastlabel/fastlabel/test/treetest"
)

// TestLocked: what nobody may write, not even root, is named with the reason; one
// that the label is right on is no failure.
func TestLocked(t *testing.T) {
	treetest.Need(t, "root")
	for _, fs := range []string{"ext4", "xfs", "btrfs"} {
		for engine, m := range engines() {
			t.Run(fs+"/"+engine, func(t *testing.T) {
				root := grow(t, on(t, fs), plain)
				for _, c := range []struct {
					name  string
					which int
					why   string
				}{
					{"f00", fsImmutable, "chattr -i"},
					{"f00", fsAppend, "chattr -a"},
					{"d", fsImmutable, "chattr -i"},
					{".", fsImmutable, "chattr -i"},
				} {
					path := filepath.Join(root, c.name)
					treetest.Set(t, root, ".", oldLabel)
					treetest.Set(t, root, c.name, oldLabel)
					flag(t, path, c.which, true)
					r, err := tree(t.Context(), root, newLabel, Options{}, as(m))
					flag(t, path, c.which, false)
					if !errors.Is(err, syscall.EPERM) || !strings.Contains(err.Error(), c.why) || r.Complete || pathOf(err) != path {
						t.Errorf("%s, %s: %+v, %v", c.name, c.why, r, err)
					}
				}
				if r, err := tree(t.Context(), root, newLabel, Options{}, as(m)); err != nil || !r.Complete {
					t.Fatalf("%+v, %v", r, err)
				}
				flag(t, filepath.Join(root, "f00"), fsImmutable, true)
				r, err := tree(t.Context(), root, newLabel, Options{}, as(m))
				flag(t, filepath.Join(root, "f00"), fsImmutable, false)
				if err != nil || !r.Complete {
					t.Errorf("right, and immutable: %+v, %v", r, err)
				}
			})
		}
	}
}
