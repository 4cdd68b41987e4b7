// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"os/user"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// globbed returns the paths with patterns replaced by what they match, as restorecon does for
// operands and lists (glob(3) with braces, tildes and hidden names). What exists by this
// name is taken for it, and what matches nothing stays as it is: no such file.
func (j *job) globbed(ctx context.Context, paths []string) (all []string, err error) {
	for _, p := range paths {
		found := []string{p}
		if strings.ContainsAny(p, `*?[{\`) || strings.HasPrefix(p, "~") {
			if found, err = answer(ctx, "readdir", p, func() ([]string, error) { return glob(p), nil }); err != nil {
				return nil, err
			}
		}
		all = append(all, found...)
	}
	return all, nil
}

func glob(pattern string) (found []string) {
	if _, err := os.Lstat(pattern); err == nil {
		return []string{pattern}
	}
	for _, p := range braces(pattern) {
		found = append(found, globOne(home(p))...)
	}
	if len(found) == 0 {
		return []string{pattern}
	}
	return found
}

// braces returns what {a,b} in pattern stands for, in its order.
func braces(pattern string) (all []string) {
	depth, start, cuts := 0, 0, []int{}
	for i := 0; i < len(pattern); i++ {
		switch c := pattern[i]; {
		case c == '\\':
			i++
		case c == '{' && strings.HasPrefix(pattern[i:], "{}"):
			i++
		case c == '{':
			if depth++; depth == 1 {
				start, cuts = i, []int{i}
			}
		case c == ',' && depth == 1:
			cuts = append(cuts, i)
		case c == '}' && depth == 1:
			cuts = append(cuts, i)
			for n, cut := range cuts[1:] {
				all = append(all, braces(pattern[:start]+pattern[cuts[n]+1:cut]+pattern[i+1:])...)
			}
			return all
		case c == '}' && depth > 1:
			depth--
		}
	}
	return []string{pattern}
}

// home replaces ~ and ~USER in front.
func home(pattern string) string {
	name, rest, _ := strings.Cut(pattern, "/")
	if !strings.HasPrefix(name, "~") {
		return pattern
	}
	dir := os.Getenv("HOME")
	if name != "~" {
		dir = ""
		if account, err := user.Lookup(name[1:]); err == nil {
			dir = account.HomeDir
		}
	}
	if dir == "" {
		return pattern
	}
	return strings.TrimSuffix(dir+"/"+rest, "/")
}

// globOne returns the paths that pattern matches, sorted, without . and ..
func globOne(pattern string) []string {
	found := []string{""}
	for i, part := range strings.Split(pattern, "/") {
		var longer []string
		for _, dir := range found {
			if i > 0 {
				dir += "/"
			}
			if !strings.ContainsAny(part, "*?[") {
				longer = append(longer, dir+escaped().ReplaceAllString(part, "$1"))
				continue
			}
			entries, _ := os.ReadDir(max(dir, ".")) // what is no directory has none
			for _, e := range entries {
				if fits(part, e.Name()) {
					longer = append(longer, dir+e.Name())
				}
			}
		}
		found = longer
	}
	return slices.DeleteFunc(found, func(p string) bool { _, err := os.Lstat(p); return err != nil })
}

var (
	escaped = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?s)\\(.)`) })
	piece   = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?s)\*|\?|\\.|\[[!^]?\]?(?:\[:\w+:\]|\\.|[^\]])*\]|.`)
	})
)

// fits reports whether name fits part, as fnmatch(3) has it.
func fits(part, name string) bool {
	re := piece().ReplaceAllStringFunc(part, func(p string) string {
		switch {
		case p == "*":
			return ".*"
		case p == "?":
			return "."
		case p[0] == '\\':
			return regexp.QuoteMeta(p[len(p)-1:])
		case p[0] == '[' && len(p) > 1:
			in, not := strings.CutPrefix(p[1:len(p)-1], "!")
			if !not {
				in, not = strings.CutPrefix(in, "^")
			}
			if in = strings.NewReplacer("[:", "[:", "[", `\[`).Replace(in); strings.HasPrefix(in, "]") {
				in = `\` + in
			}
			if not {
				in = "^" + in
			}
			return "[" + in + "]"
		}
		return regexp.QuoteMeta(p)
	})
	match, _ := regexp.MatchString("(?s)^"+re+"$", name) // what is no pattern fits nothing
	return match
}
