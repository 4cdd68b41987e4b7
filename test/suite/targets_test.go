// SPDX-License-Identifier: Apache-2.0

package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestTargets: what -short makes smaller is what make check runs whole, so that no
// size is left out by both.
func TestTargets(t *testing.T) {
	text, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`(?m)^LONG := (.*)$`).FindSubmatch(text)
	if m == nil {
		t.Fatal("the Makefile has no LONG")
	}
	want := slices.Sorted(maps.Keys(shortened(t, "../..")))
	if have := slices.Sorted(strings.SplitSeq(string(m[1]), "|")); !slices.Equal(have, want) || len(want) == 0 {
		t.Errorf("LONG is\n\t%s\nand what -short changes is\n\t%s", strings.Join(have, "|"), strings.Join(want, "|"))
	}
}

// shortened names the tests of the module that ask, by whatever function, whether
// they are to be short.
func shortened(t *testing.T, root string) map[string]bool {
	t.Helper()
	calls := map[string][]string{} // who is called, by the caller; both with the directory
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if _, e := os.Stat(filepath.Join(path, "go.mod")); d.IsDir() && path != root && (e == nil || d.Name()[0] == '.') {
			return fs.SkipDir
		}
		if !strings.HasSuffix(path, "_test.go") || filepath.Dir(path) == filepath.Join(root, "test/suite") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, decl := range file.Decls {
			f, is := decl.(*ast.FuncDecl)
			if !is || f.Body == nil {
				continue
			}
			at := filepath.Dir(path) + " "
			ast.Inspect(f.Body, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.SelectorExpr:
					if x, is := n.X.(*ast.Ident); is && x.Name == "testing" && n.Sel.Name == "Short" {
						calls[at+f.Name.Name] = append(calls[at+f.Name.Name], "testing.Short")
					}
				case *ast.Ident:
					calls[at+f.Name.Name] = append(calls[at+f.Name.Name], at+n.Name)
				}
				return true
			})
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	asks := map[string]bool{"testing.Short": true}
	for more := true; more; {
		more = false
		for f, to := range calls {
			if !asks[f] && slices.ContainsFunc(to, func(g string) bool { return asks[g] }) {
				asks[f], more = true, true
			}
		}
	}
	tests := map[string]bool{}
	for f := range asks {
		if _, name, _ := strings.Cut(f, " "); strings.HasPrefix(name, "Test") {
			tests[name] = true
		}
	}
	return tests
}
