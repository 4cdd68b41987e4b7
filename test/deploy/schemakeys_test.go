// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"maps"
	"strings"
)

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
