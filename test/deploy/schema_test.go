// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// object is a JSON object as the validator takes it.
type object = map[string]any

func readSchema(t *testing.T) object {
	t.Helper()
	text, err := os.ReadFile("../../docs/output.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return v.(object)
}

// kinds are the names of the kinds of lines.
func kinds(schema object) (names []string) {
	for _, one := range schema["oneOf"].([]any) {
		names = append(names, strings.TrimPrefix(one.(object)["$ref"].(string), "#/$defs/"))
	}
	return names
}

// compile compiles the schema; strictly: it has no room for keys that it does
// not name, as it has for those who read what later versions print.
func compile(t *testing.T, schema object, strictly bool) *jsonschema.Schema {
	t.Helper()
	for _, kind := range kinds(schema) {
		s := resolve(schema, "#/$defs/"+kind)
		delete(s, "unevaluatedProperties")
		if strictly {
			s["unevaluatedProperties"] = false
		}
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	c.AssertContent()
	if err := c.AddResource("output.json", schema); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("output.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// printed returns the lines of JSON in the golden files of the command and in its
// page in docs, and some of a real run.
func printed(t *testing.T) (lines []string) {
	t.Helper()
	files, err := filepath.Glob("../../cmd/fastlabel/testdata/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	files = append(files, "../../docs/output.md")
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if line, ok := strings.CutPrefix(strings.TrimPrefix(line, "1> "), `{"message_type"`); ok {
				line = strings.Replace(line, `"seconds":T`, `"seconds":1`, 1) // masked in real.txt
				lines = append(lines, `{"message_type"`+line)
			}
		}
	}
	golden := len(lines)
	dir := t.TempDir()
	for i := range 300 {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("f%d\xff", i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out, code := runProgram(t, buildProgram(t), "verify", "-v", "--json", "-p", "--max-rate", "150", "-t", "never_given_t", dir)
	lines = slices.AppendSeq(lines, strings.Lines(string(out)))
	if n := len(lines) - golden; code != 4 || golden < 40 || n < 303 || !strings.Contains(string(out), `"state":"running"`) {
		t.Fatalf("%d golden lines, and %d with exit %d", golden, n, code)
	}
	return lines
}

func parseLine(t *testing.T, line string) object {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(line))
	if err != nil {
		t.Fatalf("%v: %s", err, line)
	}
	return v.(object)
}

// Every line that the command prints is one of the schema's, without a key that
// the schema does not name; and every kind, with every key of it, is printed.
func TestSchema(t *testing.T) {
	schema := readSchema(t)
	strict := compile(t, schema, true)
	seen := map[string]bool{}
	for _, line := range printed(t) {
		v := parseLine(t, line)
		if err := strict.Validate(v); err != nil {
			t.Errorf("%s%v", line, err)
		}
		kind := v["message_type"].(string)
		if state, ok := v["state"].(string); ok {
			kind = state
		} else if kind == "status" {
			kind = "probed"
		}
		for key := range v {
			seen[kind+"."+key] = true
		}
	}
	for _, kind := range kinds(schema) {
		for key := range properties(schema, resolve(schema, "#/$defs/"+kind)) {
			if whole := kind + "." + key; !seen[whole] && whole != "probed.state" { // which it has not
				t.Errorf("no line has %s", whole)
			}
		}
	}
}

// What is no line of the command is refused; a key that is new is not.
func TestSchemaRefuses(t *testing.T) {
	lines := map[string]object{}
	for _, line := range printed(t) {
		v := parseLine(t, line)
		lines[fmt.Sprint(v["message_type"], v["state"])] = v
	}
	open := compile(t, readSchema(t), false)
	for name, change := range map[string]struct {
		line, key string
		value     any // nil: the key is taken away
	}{
		"another type":          {"note<nil>", "message_type", "notes"},
		"no type":               {"note<nil>", "message_type", nil},
		"another state":         {"statusrunning", "state", "walking"},
		"a summary's code":      {"summary<nil>", "exit_code", 2},
		"a summary's label":     {"summary<nil>", "label", "container_file_t"},
		"a summary's count":     {"summary<nil>", "failed", -1},
		"a summary's root":      {"summary<nil>", "root", nil},
		"counts of a summary":   {"summary<nil>", "vanished", nil},
		"an error's text":       {"error<nil>", "text", nil},
		"an error's errno":      {"error<nil>", "errno", "eperm"},
		"an error's bytes":      {"error<nil>", "path_base64", "\xff"},
		"a change's label":      {"change<nil>", "to", nil},
		"a skip's reason":       {"skip<nil>", "reason", ""},
		"a waiting holder":      {"statuswaiting", "holder", nil},
		"a stalled path":        {"statusstalled", "path", nil},
		"a running rate":        {"statusrunning", "rate", "many"},
		"a running share":       {"statusrunning", "percent", 100},
		"a probe's depth":       {"status<nil>", "depth", "all"},
		"a probe's other state": {"status<nil>", "state", "running"},
	} {
		v := maps.Clone(lines[change.line])
		if err := open.Validate(v); v == nil || err != nil {
			t.Fatalf("%s: %v is no line: %v", name, v, err)
		}
		v["later"] = true
		if err := open.Validate(v); err != nil {
			t.Errorf("%s: with a new key: %v", name, err)
		}
		v[change.key] = change.value
		if change.value == nil {
			delete(v, change.key)
		}
		if open.Validate(v) == nil {
			t.Errorf("%s: passes", name)
		}
	}
}
