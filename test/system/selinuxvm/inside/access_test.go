// SPDX-License-Identifier: Apache-2.0

//go:build linux

package inside

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/fastlabel/fastlabel/test/system/selinuxvm/avc"
)

// TestAccess: a process in a container's domain is denied the volume before,
// and reads it when it is labelled for it; other levels read only what is
// shared. The control is a volume that nobody labelled: it stays closed. What
// was denied the policy did deny, for these contexts.
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
			eachOf(t, volumes, func(t *testing.T, dir string, log *avc.Log) {
				root := grow(t, dir)
				control := grow(t, mkdir(t, dir, "control"))
				before := labelOf(t, root)
				paths := map[string]string{".": "dir", "top": "file", "a": "dir", "a/f7": "file", "a/b/c": "dir", "a/b/c/deep": "file"}
				unlabelled := func(domain, path, class string) {
					t.Helper()
					may(t, false, domain, path)
					log.Has(t, avc.Denial{Permissions: []string{"read"}, Source: domain, Target: before, Class: class})
				}
				for p, class := range paths {
					unlabelled(domainA, filepath.Join(root, p), class)
					unlabelled(domainB, filepath.Join(root, p), class)
				}
				label(t, 0, "--label", c.label, root)
				all(t, root, c.label)
				for p, class := range paths {
					may(t, c.a, domainA, filepath.Join(root, p))
					may(t, c.b, domainB, filepath.Join(root, p))
					unlabelled(domainA, filepath.Join(control, p), class)
				}

				// Another level is refused the directories in silence, for the policy
				// counts their type among those to mount on. A file that is reached by
				// another way tells.
				beside := filepath.Join(dir, "beside")
				if err := os.Link(filepath.Join(root, "top"), beside); err != nil {
					t.Fatal(err)
				}
				for domain, allowed := range map[string]bool{domainA: c.a, domainB: c.b} {
					may(t, allowed, domain, beside)
					if allowed {
						log.Hasnt(t, avc.Denial{Source: domain})
					} else {
						log.Has(t, avc.Denial{Permissions: []string{"read"}, Source: domain, Target: c.label, Class: "file"})
					}
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
