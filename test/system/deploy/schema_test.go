// SPDX-License-Identifier: Apache-2.0

package deploy

import (
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

// kinds are the names of the kinds of lines.
func kinds(schema object) (names []string) {
	for _, one := range schema["oneOf"].([]any) {
		names = append(names, strings.TrimPrefix(one.(object)["$ref"].(string), "#/$defs/"))
	}
	return names
}

// compile compiles the schema without the room that it has for keys of later versions.
func compile(t *testing.T, schema object) *jsonschema.Schema {
	t.Helper()
	for _, kind := range kinds(schema) {
		resolve(schema, "#/$defs/"+kind)["unevaluatedProperties"] = false
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

func resolve(schema object, ref string) object {
	return schema["$defs"].(object)[strings.TrimPrefix(ref, "#/$defs/")].(object)
}

// properties are those of a definition and of what it is made of.
func properties(schema, def object) map[string]any {
	all := map[string]any{}
	if own, ok := def["properties"].(object); ok {
		maps.Copy(all, own)
	}
	if parts, ok := def["allOf"].([]any); ok {
		for _, p := range parts {
			maps.Copy(all, properties(schema, resolve(schema, p.(object)["$ref"].(string))))
		}
	}
	return all
}

// printed returns the lines of JSON in the golden files of the command and in its
// page in docs, and some of a real run.
func printed(t *testing.T) (lines []string) {
	t.Helper()
	files, err := filepath.Glob("../../../cmd/fastlabel/testdata/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	files = append(files, "../../../docs/output.md")
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

func parse(t *testing.T, text string) object {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return v.(object)
}

// Every line that the command prints is one of the schema's, without a key that
// the schema does not name; and every kind, with every key of it, is printed.
func TestSchema(t *testing.T) {
	schema := parse(t, read(t, "docs/output.schema.json"))
	strict := compile(t, schema)
	seen := map[string]bool{}
	for _, line := range printed(t) {
		v := parse(t, line)
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
