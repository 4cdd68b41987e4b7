// SPDX-License-Identifier: Apache-2.0

package mutants

import (
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// root is the project's.
const root = "../.."

// TestTable: each entry applies, compiles, and names a test that there is.
func TestTable(t *testing.T) {
	form := regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	seen := map[string]bool{}
	tests, sources := testsOf{}, newSources(t)
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
		if err := sources.compile(files); err != nil {
			t.Errorf("%s does not build: %v", m.Name, err)
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

// house is the project's module.
const house = "github.com/fastlabel/fastlabel/"

// sources are the packages, as the compiler sees them.
type sources struct {
	fset     *token.FileSet
	files    map[string][]string // of each package, by its path
	compiled types.Importer      // of packages without a mutant
}

func newSources(t *testing.T) sources {
	t.Helper()
	cmd := exec.Command("go", "list", "-export", "-deps", "-f", `{{.ImportPath}} {{.Export}} {{join .GoFiles " "}}`, "./...")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	files, exports := map[string][]string{}, map[string]string{}
	for line := range strings.Lines(string(out)) {
		f := strings.Fields(line)
		exports[f[0]], files[f[0]] = f[1], f[2:]
	}
	fset := token.NewFileSet()
	return sources{fset, files, importer.ForCompiler(fset, "gc", func(name string) (io.ReadCloser, error) { return os.Open(exports[name]) })}
}

// compile checks the types in each package that has one of the broken files.
func (s sources) compile(broken map[string]string) error {
	done := map[string]bool{}
	for name := range broken {
		dir := path.Dir(name)
		if done[dir] {
			continue
		}
		done[dir] = true
		var parsed []*ast.File
		for _, base := range s.files[house+dir] {
			var text any
			if b, is := broken[path.Join(dir, base)]; is {
				text = b
			}
			f, err := parser.ParseFile(s.fset, filepath.Join(root, dir, base), text, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			parsed = append(parsed, f)
		}
		config := types.Config{Importer: s.compiled}
		if _, err := config.Check(house+dir, s.fset, parsed, nil); err != nil {
			return err
		}
	}
	return nil
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
