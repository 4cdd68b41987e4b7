// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"go/parser"
	"go/token"
	"io/fs"
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
	shown := make(map[string][]string)
	var above []string
	for _, line := range regexp.MustCompile(`(?m)^//\t(\w+) *▶(.*)$`).FindAllStringSubmatch(string(doc), -1) {
		name, imports := line[1], strings.Fields(line[2])
		above = append(above, name)
		shown[name] = imports
		for _, i := range imports {
			if slices.Contains(above, i) {
				t.Errorf("%s imports %s, which is not beneath it", name, i)
			}
		}
	}

	dirs, imports := make(map[string]string), make(map[string][]string)
	look := func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			return err
		}
		dir, err := filepath.Abs(filepath.Dir(file))
		if err != nil {
			return err
		}
		name := filepath.Base(dir)
		if was := dirs[name]; was != "" && was != dir {
			t.Errorf("%s and %s have one name in the picture", was, dir)
		}
		dirs[name] = dir
		source, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, i := range source.Imports {
			if at := strings.Trim(i.Path.Value, `"`); strings.HasPrefix(at, "github.com/fastlabel/fastlabel/") {
				imports[name] = append(imports[name], path.Base(at))
			}
		}
		return nil
	}
	for _, root := range []string{".", "../internal"} {
		if err := filepath.WalkDir(root, look); err != nil {
			t.Fatal(err)
		}
	}
	for name := range dirs {
		slices.Sort(imports[name])
		is := slices.Compact(imports[name])
		if !slices.Contains(above, name) {
			t.Errorf("doc.go does not show %s, which imports %v", name, is)
		} else if !slices.Equal(is, shown[name]) {
			t.Errorf("%s imports %v, not %v as doc.go shows", name, is, shown[name])
		}
	}
	for _, name := range above {
		if dirs[name] == "" {
			t.Errorf("doc.go shows %s, which does not exist", name)
		}
	}
}
