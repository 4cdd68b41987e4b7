// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// callers gives a regular expression for the tests of the module at root that call
// one of what, by whatever function: "testing.Short", say.
func callers(root string, what ...string) (string, error) {
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
					if x, is := n.X.(*ast.Ident); is {
						calls[at+f.Name.Name] = append(calls[at+f.Name.Name], x.Name+"."+n.Sel.Name)
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
		return "", err
	}
	asks := map[string]bool{}
	for _, function := range what {
		asks[function] = true
	}
	for more := true; more; {
		more = false
		for f, to := range calls {
			if !asks[f] && slices.ContainsFunc(to, func(g string) bool { return asks[g] }) {
				asks[f], more = true, true
			}
		}
	}
	var tests []string
	for f := range asks {
		if _, name, _ := strings.Cut(f, " "); strings.HasPrefix(name, "Test") {
			tests = append(tests, name)
		}
	}
	if len(tests) == 0 {
		return "", fmt.Errorf("no test calls %s", strings.Join(what, " or "))
	}
	slices.Sort(tests)
	return "^(" + strings.Join(slices.Compact(tests), "|") + ")$", nil
}
