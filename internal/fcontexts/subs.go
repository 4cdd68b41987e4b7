// SPDX-License-Identifier: Apache-2.0

package fcontexts

import (
	"slices"
	"strings"
)

// replacement is a line of a file of substitutions: what is beneath from is looked up
// as if it were beneath to.
type replacement struct{ from, to string }

// list is a file of substitutions, the last line first.
type list []replacement

// apply returns what replaces path, which is path itself if no line fits.
func (l list) apply(path string) string {
	for _, r := range l {
		if rest, ok := strings.CutPrefix(path, r.from); ok && (rest == "" || rest[0] == '/') {
			if r.to == "/" {
				rest = strings.TrimPrefix(rest, "/")
			}
			return r.to + rest
		}
	}
	return path
}

// substitutions are those of file.subs and file.subs_dist.
type substitutions struct {
	local, dist list
	root        substitution
}

// substitution is a replacement at a path and beneath it.
type substitution struct {
	children map[string]*substitution
	self, to string // for what the path itself is taken, and the directory beneath; "" if nothing is new
}

func (s *substitutions) apply(path string) string { return s.dist.apply(s.local.apply(path)) }

// longestLine bytes, the newline included, are what libselinux reads at a time.
const longestLine = 1022

// read reads text, the content of file, into l.
func (l *list) read(file, text string) error {
	line := 0
	for text := range strings.Lines(text) {
		line++
		fields := strings.FieldsFunc(text, isSpace)
		switch {
		case len(text) > longestLine:
			return lineError(file, line, "a line has more than %d bytes", longestLine)
		case strings.Contains(text, "\x00"):
			return lineError(file, line, "a line has a null byte")
		case len(fields) < 2 || fields[0][0] == '#':
			continue
		case fields[1][0] != '/':
			return lineError(file, line, "%q is not an absolute path", fields[1])
		}
		*l = append(*l, replacement{fields[0], fields[1]})
	}
	slices.Reverse(*l)
	return nil
}

// find notes where something is replaced.
func (s *substitutions) find() {
	for _, r := range slices.Concat(s.local, s.dist) {
		s.add(r.from)
	}
	// Where the two meet, the second is about what the first put there.
	for _, r := range s.local {
		for _, d := range s.dist {
			if rest, ok := strings.CutPrefix(d.from, strings.TrimSuffix(r.to, "/")); ok {
				s.add(r.from + rest)
			}
		}
	}
}

// add notes that something is replaced at path.
func (s *substitutions) add(path string) {
	if path[0] != '/' || path == "/" || clean(path) != path {
		return // no path is like that, or nothing is beneath it
	}
	at := &s.root
	for name := range strings.SplitSeq(path[1:], "/") {
		next := at.children[name]
		if next == nil {
			next = &substitution{}
			if at.children == nil {
				at.children = map[string]*substitution{}
			}
			at.children[name] = next
		}
		at = next
	}
	at.self = s.apply(path)
	at.to = strings.TrimSuffix(s.apply(path+"/\x00"), "\x00")
}
