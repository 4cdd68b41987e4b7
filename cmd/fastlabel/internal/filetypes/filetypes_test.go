// SPDX-License-Identifier: Apache-2.0

package filetypes

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestNames(t *testing.T) {
	root := t.TempDir()
	if reference := Names(root); !slices.Contains(reference, "container_file_t") || !slices.IsSorted(reference) {
		t.Errorf("no policy: %q", reference)
	}
	for file, text := range map[string]string{
		"config":                                  "# SELINUXTYPE=other\nSELINUX=enforcing\nSELINUXTYPE=mine\n",
		"mine/contexts/files/file_contexts":       "/.*\tsystem_u:object_r:default_t:s0\n/dev -d system_u:object_r:device_t:s0\n/x <<none>>\n/y\tsystem_u:object_r:default_t:s0\n\n/evil u:r:$(id):s0\n",
		"mine/contexts/files/file_contexts.local": "/srv/volume(/.*)?    system_u:object_r:container_file_t:s0:c1,c2\n",
		"mine/contexts/customizable_types":        "svirt_image_t\n",
		"other/contexts/files/file_contexts":      "/ u:r:other_t:s0\n",
	} {
		at := filepath.Join(root, "etc/selinux", file)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got := strings.Join(Names(root), " "); got != "container_file_t default_t device_t svirt_image_t" {
		t.Error(got)
	}
}
