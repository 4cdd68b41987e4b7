// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"go/types"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func parseSource(t *testing.T, path string) *ast.File {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// asks are the annotations that the hook reads.
type asks struct {
	relabel string
	own     []string // relabel too
	crio    []string
}

// readAsks finds them in the source: strings in declarations named Ask, and TrySkip.
func readAsks(t *testing.T) asks {
	t.Helper()
	var a asks
	visit := func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || !strings.HasPrefix(spec.Names[0].Name, "Ask") && spec.Names[0].Name != "TrySkip" {
			return true
		}
		ast.Inspect(spec, func(n ast.Node) bool {
			lit, ok := n.(*ast.BasicLit)
			if !ok || lit.Kind != token.STRING {
				return true
			}
			value := constant.StringVal(constant.MakeFromLiteral(lit.Value, lit.Kind, 0))
			if spec.Names[0].Name == "TrySkip" {
				a.crio = append(a.crio, value)
			} else {
				a.own = append(a.own, value)
			}
			if spec.Names[0].Name == "AskRelabel" {
				a.relabel = value
			}
			return true
		})
		return false
	}
	ast.Inspect(parseSource(t, "../../cmd/fastlabel/internal/oci/request.go"), visit)
	if a.relabel == "" || len(a.own) != 4 || len(a.crio) != 2 {
		t.Fatalf("the hook's source: %+v", a)
	}
	return a
}

// readDuration finds a constant of the hook's source that is written with what
// the time package has.
func readDuration(t *testing.T, name string) time.Duration {
	t.Helper()
	var found time.Duration
	ast.Inspect(parseSource(t, "../../cmd/fastlabel/hook.go"), func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || spec.Names[0].Name != name {
			return true
		}
		text := strings.ReplaceAll(types.ExprString(spec.Values[0]), "time.Second", "1000000000")
		v, err := types.Eval(token.NewFileSet(), nil, token.NoPos, text)
		if err != nil {
			t.Fatal(err)
		}
		d, _ := constant.Int64Val(v.Value)
		found = time.Duration(d)
		return false
	})
	if found == 0 {
		t.Fatalf("the hook's source has no %s", name)
	}
	return found
}

// exitCodes are the constants of the command's package exit, by name.
func exitCodes(t *testing.T) map[string]int32 {
	t.Helper()
	codes := map[string]int32{}
	ast.Inspect(parseSource(t, "../../cmd/fastlabel/internal/exit/codes.go"), func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok && len(spec.Values) == 1 {
			if lit, ok := spec.Values[0].(*ast.BasicLit); ok && lit.Kind == token.INT {
				code, _ := constant.Int64Val(constant.MakeFromLiteral(lit.Value, lit.Kind, 0))
				codes[spec.Names[0].Name] = int32(code)
			}
		}
		return true
	})
	if len(codes) != 8 {
		t.Fatalf("the command's exit codes: %v", codes)
	}
	return codes
}

// handlerKeys are the keys that CRI-O's source gives a runtime handler, with
// their Go types.
func handlerKeys(t *testing.T) map[string]string {
	t.Helper()
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/cri-o/cri-o").Output()
	if err != nil {
		t.Fatal(err)
	}
	keys := map[string]string{}
	ast.Inspect(parseSource(t, filepath.Join(strings.TrimSpace(string(dir)), "pkg/config/config.go")), func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok || spec.Name.Name != "RuntimeHandler" {
			return true
		}
		for _, field := range spec.Type.(*ast.StructType).Fields.List {
			if field.Tag != nil {
				keys[tomlKey(strings.Trim(field.Tag.Value, "`"))] = types.ExprString(field.Type)
			}
		}
		return false
	})
	if len(keys) < 10 {
		t.Fatalf("CRI-O's source: %v", keys)
	}
	return keys
}
