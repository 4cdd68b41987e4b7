// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"go/build"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestDocImports compares the imports of the library's packages, on whatever platform,
// with the picture.
func TestDocImports(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	shown := map[string][]string{}
	for _, line := range regexp.MustCompile(`(?m)^//\t(\w+) *▶(.*)$`).FindAllStringSubmatch(string(doc), -1) {
		name, imports := line[1], strings.Fields(line[2])
		shown[name] = imports
		for _, i := range imports {
			if shown[i] != nil {
				t.Errorf("%s imports %s, which is not beneath it", name, i)
			}
		}
	}
	dirs, err := filepath.Glob("../internal/*")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, dir := range append(dirs, "../relabel", "contexts") {
		name, imports := path.Base(dir), map[string]bool{}
		found[name] = true
		for _, platform := range []string{"linux", "darwin"} {
			at := build.Default
			at.GOOS = platform
			p, err := at.ImportDir(dir, 0)
			if _, none := err.(*build.NoGoError); err != nil && !none {
				t.Fatal(err)
			}
			for _, i := range p.Imports {
				if strings.HasPrefix(i, "github.com/fastlabel/fastlabel/") {
					imports[path.Base(i)] = true
				}
			}
		}
		if is, want := slices.Sorted(maps.Keys(imports)), shown[name]; want == nil || !slices.Equal(is, want) {
			t.Errorf("%s imports %v, not %v as doc.go shows", name, is, want)
		}
	}
	for name := range shown {
		if !found[name] {
			t.Errorf("doc.go shows %s, which does not exist", name)
		}
	}
}
