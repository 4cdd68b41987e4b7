// SPDX-License-Identifier: Apache-2.0

package treetest

import (
	"fmt"
	"maps"
	"slices"
)

// diffLines bounds a message: the first lines tell what is wrong.
const diffLines = 10

// Diff lists where two maps differ, by key: "- " is only in a, "+ " only in
// b, "! " in both with other values. Beyond ten lines it says how many more.
// No lines mean that the maps are equal.
func Diff[V comparable](a, b map[string]V) []string {
	keys := slices.Collect(maps.Keys(a))
	for k := range b {
		if _, ok := a[k]; !ok {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	var out []string
	more := 0
	for _, k := range keys {
		va, ina := a[k]
		vb, inb := b[k]
		if ina && inb && va == vb {
			continue
		}
		if len(out) == diffLines-1 {
			more++
			continue
		}
		switch {
		case !inb:
			out = append(out, fmt.Sprintf("- %s: %s", short(k), show(va)))
		case !ina:
			out = append(out, fmt.Sprintf("+ %s: %s", short(k), show(vb)))
		default:
			out = append(out, fmt.Sprintf("! %s: %s, %s", short(k), show(va), show(vb)))
		}
	}
	if more > 0 {
		out = append(out, fmt.Sprintf("and %d more", more))
	}
	return out
}

func show(v any) string {
	if s, ok := v.(string); ok {
		return short(s)
	}
	return fmt.Sprintf("%+v", v)
}

// short quotes s and cuts the middle out of the paths of deep trees.
func short(s string) string {
	if len(s) > 200 {
		return fmt.Sprintf("%q...%q (%d bytes)", s[:80], s[len(s)-80:], len(s))
	}
	return fmt.Sprintf("%q", s)
}
