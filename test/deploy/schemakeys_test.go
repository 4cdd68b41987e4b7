// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"maps"
	"strings"
)

// mark notes the keys of an object, and of those in it.
func mark(seen map[string]bool, at string, v any) {
	seen[at] = true
	switch v := v.(type) {
	case object:
		for key, one := range v {
			mark(seen, at+"."+key, one)
		}
	case []any:
		for _, one := range v {
			mark(seen, at, one)
		}
	}
}

// objects visits the definition of an object that a line is or holds, with its
// keys, and then of those in it. at is the way there, by keys.
func objects(schema object, def any, at string, visit func(at string, def object, keys map[string]any)) {
	d, _ := def.(object) // or false: there is no such key
	if ref, ok := d["$ref"].(string); ok {
		d = resolve(schema, ref)
	}
	if items, ok := d["items"]; ok {
		objects(schema, items, at, visit)
		return
	}
	keys := properties(schema, d)
	if len(keys) == 0 {
		return
	}
	visit(at, d, keys)
	for key, one := range keys {
		objects(schema, one, at+"."+key, visit)
	}
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
