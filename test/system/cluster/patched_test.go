// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"os"
	"path/filepath"
	"testing"
)

// TestApply: a change whose text is not there once is an error, not a containerd that
// calls what it called before.
func TestApply(t *testing.T) {
	tree := t.TempDir()
	if err := os.WriteFile(filepath.Join(tree, "f"), []byte("a b b"), 0o644); err != nil {
		t.Fatal(err)
	}
	files, err := apply(tree, []change{{"f", "a", "c"}, {"f", "c b", "d"}})
	if err != nil || files["f"] != "d b" {
		t.Errorf("%q, %v", files, err)
	}
	for _, old := range []string{"b", "x"} {
		if _, err := apply(tree, []change{{"f", old, "c"}}); err == nil {
			t.Errorf("no error for %q", old)
		}
	}
}
