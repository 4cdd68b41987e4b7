// SPDX-License-Identifier: Apache-2.0

package mutants

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// root is the project's.
const root = "../.."

// TestTable: each entry applies, is still Go, and names a test that there is.
func TestTable(t *testing.T) {
	form := regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	seen := map[string]bool{}
	tests := testsOf{}
	for _, m := range All() {
		if seen[m.Name] || !form.MatchString(m.Name) {
			t.Errorf("%q: not a name, or not the only one", m.Name)
		}
		seen[m.Name] = true
		if m.Breaks == "" || m.By == "" && m.Inside == "" {
			t.Errorf("%s: it does not say what it breaks, or what it dies by", m.Name)
		}
		files, err := m.Apply(root)
		if err != nil {
			t.Error(err)
			continue
		}
		for name, text := range files {
			if _, err := parser.ParseFile(token.NewFileSet(), name, text, parser.SkipObjectResolution); err != nil {
				t.Errorf("%s: %v", m.Name, err)
			}
		}
		for _, e := range m.Edits {
			if e.Old == e.New {
				t.Errorf("%s: nothing is changed", m.Name)
			}
		}
		if name, dir := m.Test(); name != "" && !tests.has(t, dir, name) {
			t.Errorf("%s: there is no test %s in %s", m.Name, name, dir)
		}
		if m.Inside != "" && !tests.has(t, "test/selinuxvm/inside", m.Inside) {
			t.Errorf("%s: there is no test %s for the machine", m.Name, m.Inside)
		}
	}
}

// testsOf are the names of the tests, by the directory of their package.
type testsOf map[string]map[string]bool

func (all testsOf) has(t *testing.T, dir, test string) bool {
	t.Helper()
	if all[dir] == nil {
		all[dir] = map[string]bool{}
		files, err := os.ReadDir(filepath.Join(root, dir))
		if err != nil {
			t.Error(err)
		}
		for _, f := range files {
			if !strings.HasSuffix(f.Name(), "_test.go") {
				continue
			}
			parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, dir, f.Name()), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Error(err)
				continue
			}
			for _, d := range parsed.Decls {
				if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil {
					all[dir][f.Name.Name] = true
				}
			}
		}
	}
	name, _, _ := strings.Cut(test, "/")
	return strings.HasPrefix(name, "Test") && all[dir][name]
}
