// SPDX-License-Identifier: Apache-2.0

package fcontexts

import (
	"fmt"
	"strings"
)

// isSpace is isspace(3) of the C locale.
func isSpace(r rune) bool { return r == ' ' || r >= '\t' && r <= '\r' }

var kinds = map[string]Kind{
	"-p": Fifo, "-c": Char, "-d": Folder, "-b": Block, "--": File, "-l": Link, "-s": Socket,
}

// longest is what libselinux 3.8 and later allow a field, in bytes.
const longest = 0xfffe

// lineError says what is wrong with a line of file.
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
		if err := s.add(r); err != nil {
			return lineError(file, line, "%v", err)
		}
	}
	return nil
}

// add appends a rule.
func (s *Set) add(r Rule) error {
	number := int32(len(s.rules))
	s.rules = append(s.rules, r)
	if name, ok := plain(r.Pattern); ok {
		if end := strings.LastIndexByte(name, '/') + 1; end > 0 && name[0] == '/' { // else no path is like that
			n := s.at(name[:end])
			if n.exact == nil {
				n.exact = map[string][]int32{}
			}
			n.exact[name[end:]] = append([]int32{number}, n.exact[name[end:]]...)
		}
		return nil
	}
	e, regular := parse(r.Pattern)
	n := s.at(stem(r.Pattern, regular && e.op == opAlternate))
	if regular {
		n.starts = append(n.starts, s.compile(e, number, r.Kind == 0))
		return nil
	}
	re, err := compileHard(r.Pattern)
	if err != nil {
		return err
	}
	n.hard = append(n.hard, hardRule{number, re})
	return nil
}
