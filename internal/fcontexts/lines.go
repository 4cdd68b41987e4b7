// SPDX-License-Identifier: Apache-2.0

package fcontexts

import (
	"fmt"
	"slices"
	"strings"
)

// isSpace is isspace(3) of the C locale.
func isSpace(r rune) bool { return r == ' ' || r >= '\t' && r <= '\r' }

var kinds = map[string]Kind{
	"-p": Fifo, "-c": Char, "-d": Folder, "-b": Block, "--": File, "-l": Link, "-s": Socket,
}

// longest is the longest field in bytes that libselinux 3.8 and later allow.
const longest = 0xfffe

// lineError returns the error of a line of file.
func lineError(file string, line int, format string, args ...any) error {
	return fmt.Errorf("%s:%d: %s", file, line, fmt.Sprintf(format, args...))
}

// addRules appends the rules that text, the content of file, has.
func (s *Set) addRules(file, text string) error {
	for _, magic := range []string{"\x8a\xff\x7c\xf9", "\xf9\x7c\xff\x8a"} {
		if strings.HasPrefix(text, magic) {
			return fmt.Errorf("%s: compiled file contexts; the text that they were made of is needed", file)
		}
	}
	contexts := map[string]string{"<<none>>": ""} // each kept once
	lines := map[Rule]Rule{}                      // by pattern and kind
	line := 0
	for text := range strings.Lines(text) {
		line++
		fields := strings.FieldsFunc(text, isSpace)
		if len(fields) == 0 || fields[0][0] == '#' {
			continue
		}
		fields = fields[:min(len(fields), 3)] // the rest is not read
		for _, f := range fields {
			if i := strings.IndexFunc(f, func(r rune) bool { return r == 0 || r >= 0x80 }); i >= 0 {
				return lineError(file, line, "%q has a byte that is not ASCII", f)
			}
			if len(f) > longest {
				return lineError(file, line, "a field has more than %d bytes", longest)
			}
		}
		r := Rule{Pattern: fields[0], File: file, Line: line}
		switch len(fields) {
		case 1:
			return lineError(file, line, "%q has no context", fields[0])
		case 3:
			kind, ok := kinds[fields[1]]
			if !ok {
				return lineError(file, line, "%q is not a kind of file: not one of -- -b -c -d -l -p -s", fields[1])
			}
			r.Kind = kind
		}
		given := fields[len(fields)-1]
		context, ok := contexts[given]
		if !ok {
			context = strings.Clone(given)
			contexts[context] = context
		}
		r.Context = context
		like := Rule{Pattern: r.Pattern, Kind: r.Kind}
		if b, is := lines[like]; is && b.Context != r.Context {
			s.Notes = append(s.Notes, lineError(file, line, "%s is also in line %d, with another context; of exact paths the first line counts, of others the last", r.Pattern, b.Line).Error())
		}
		lines[like] = r
		s.add(r)
	}
	return nil
}

// add appends a rule.
func (s *Set) add(r Rule) {
	number := int32(len(s.rules))
	name, exact := plain(r.Pattern)
	dir := stem(r.Pattern)
	r.depth = min(strings.Count(dir, "/")-1, 3)
	s.rules = append(s.rules, r)
	if !exact {
		n := s.at(dir)
		n.rules = append(n.rules, number)
		return
	}
	end := strings.LastIndexByte(name, '/') + 1
	if end == 0 || name[0] != '/' {
		return // no path is like that
	}
	n := s.at(name[:end])
	if n.exact == nil {
		n.exact = map[string][]int32{}
	}
	same := n.exact[name[end:]]
	at := slices.IndexFunc(same, func(i int32) bool { return s.rules[i].File != r.File })
	if at < 0 {
		at = len(same)
	}
	n.exact[name[end:]] = slices.Insert(same, at, number)
}

// What libselinux takes for a meta character, and what a backslash may stand before where
// there is none.
const (
	meta      = ".^$?*+|[({])}"
	unescaped = meta + "-_,"
)

// plain returns the path that a pattern stands for if it has no meta character.
func plain(pattern string) (string, bool) {
	if !strings.ContainsAny(pattern, meta+`\`) {
		return pattern, true
	}
	var b strings.Builder
	for i := 0; i < len(pattern); i++ {
		switch {
		case pattern[i] == '\\':
			i++
			if i == len(pattern) || strings.IndexByte(unescaped, pattern[i]) < 0 {
				return "", false
			}
		case strings.IndexByte(meta, pattern[i]) >= 0:
			return "", false
		}
		b.WriteByte(pattern[i])
	}
	return b.String(), true
}

// stem returns the directory, with its slash, beneath which a path must be for a
// pattern to be asked about it. libselinux asks for three components, though the
// pattern might match without the slash after the last of them, or by another
// alternative. Where all must be there anyway, the stem is as long as can be.
func stem(pattern string) string {
	dir := "/"
	if pattern[0] != '/' {
		return dir
	}
	for depth, rest := 1, pattern[1:]; ; depth++ {
		name, after, found := strings.Cut(rest, "/")
		name, ok := plain(name)
		optional := after != "" && strings.IndexByte("?*+{", after[0]) >= 0
		if !found || !ok || name == "" || depth > 3 && (optional || strings.Contains(pattern, "|")) {
			return dir
		}
		dir += name + "/"
		if optional {
			return dir
		}
		rest = after
	}
}
