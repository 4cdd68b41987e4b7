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
// size is left out by both; and only what builds a command is not run under the
// race detector.
func TestTargets(t *testing.T) {
	text, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	for list, what := range map[string]string{"LONG": "testing.Short", "BUILT": "treetest.Command"} {
		m := regexp.MustCompile(`(?m)^` + list + ` := (.*)$`).FindSubmatch(text)
		if m == nil {
			t.Fatal("the Makefile has no", list)
		}
		want := slices.Sorted(maps.Keys(callers(t, "../..", what)))
		if have := slices.Sorted(strings.SplitSeq(string(m[1]), "|")); !slices.Equal(have, want) || len(want) == 0 {
			t.Errorf("%s is\n\t%s\nand the tests that call %s are\n\t%s", list, strings.Join(have, "|"), what, strings.Join(want, "|"))
		}
	}
}

// callers names the tests of the module that call what, by whatever function.
func callers(t *testing.T, root, what string) map[string]bool {
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
					if x, is := n.X.(*ast.Ident); is && x.Name+"."+n.Sel.Name == what {
						calls[at+f.Name.Name] = append(calls[at+f.Name.Name], what)
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
	asks := map[string]bool{what: true}
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
