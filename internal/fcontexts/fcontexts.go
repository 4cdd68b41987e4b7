// SPDX-License-Identifier: Apache-2.0

// Package fcontexts reads the file contexts of an SELinux policy and says which
// label a path has by them, as libselinux's selabel_lookup does: what restorecon
// and setfiles ask.
//
// The rules, as libselinux 3.4 to 3.11 has them (src/label_file.c, label_file.h,
// label_support.c, regex.c):
//
//   - The files are FILE, FILE.homedirs and FILE.local, read in that order; the first must be
//     there. A malformed line refuses the whole.
//   - A pattern without meta characters is an exact path. An exact path goes before any
//     expression. Of expressions the rule read last goes first, of exact paths the first line of
//     the last file that has one.
//   - An expression is matched as ^PATTERN$ by PCRE2 with DOTALL, on bytes: the $ matches before a
//     newline at the end of a path too. The plain components that a pattern begins with (the first
//     three) must be directories of the path, whatever follows them: /run/*x does not match /runx.
//   - A rule of one kind of file is not asked about others. A rule <<none>> wins as others do, and
//     then the path has no label; it also wins over later rules that begin with fewer plain
//     components.
//   - Before that, doubled slashes and one at the end are removed, and FILE.subs and then
//     FILE.subs_dist replace a prefix of the path, each once, by the line that fits and was read
//     last.
//
// Where versions differ, this is what 3.9 and later do. 3.8 takes the line of a kind before that of
// all kinds, of two for one exact path, and the first of FILE.subs_dist that fits. Up to 3.7 exact
// paths are matched as expressions, so that /etc/passwd fits a name that ends in a newline, and the
// last line for one goes first; only the first component must be a directory of the path; <<none>>
// is as any other rule.
//
// Compiled files (.bin) are not read: the text beside them says the same. A pattern that cannot
// be used is an error for the paths that it might match, as for libselinux, and for no other: one
// that is wrong, or has what pcre2.go refuses.
//
// # How it is fast
//
// A pattern is translated for package regexp/syntax (pcre2.go), whose programs are one
// automaton (automaton.go), each when its directory is first met. A [Dir] is the state after
// the path of a directory: the rules that can still match beneath it, and how far each has
// got. States are made when they are first needed, and all directories with the same rest
// share one. From there a look-up reads the bytes of a name, with a table look-up for each,
// until no byte changes the state any more: at once where the rest is that of prefix(/.*)?.
// What no automaton can match, such as (?!x), goes to regexp2 (hard.go), on entries beneath
// its plain components only. None of the 5,845 rules of Debian 12 needs that, nor of Fedora's
// 6,500.
package fcontexts

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// Kind is the kind of a file, in the numbers of a directory record (DT_*). The zero
// Kind fits all.
type Kind uint8

// The kinds that a rule can ask for.
const (
	Fifo   Kind = 1
	Char   Kind = 2
	Folder Kind = 4
	Block  Kind = 6
	File   Kind = 8
	Link   Kind = 10
	Socket Kind = 12
)

// Rule is a line of the file contexts.
type Rule struct {
	Pattern string
	Kind    Kind   // 0 if the line names none
	Context string // "" for <<none>>
	File    string
	Line    int

	depth int   // plain components that libselinux finds it by
	hard  *hard // nil if the automaton has it, or it is not compiled yet
}

func (r *Rule) fits(kind Kind) bool { return r.Kind == 0 || kind == 0 || r.Kind == kind }

// Set is the file contexts of a policy. It may be used by many goroutines.
type Set struct {
	// Notes are lines of one file that have other contexts for the same paths: who wrote them may
	// have meant either.
	Notes []string

	rules []Rule // in the order in which they were read
	root  *node
	subs  substitutions

	automaton
	top *Dir // "/"
}

// node is a directory that rules name without a meta character.
type node struct {
	path     string // ends in a slash
	children map[string]*node
	exact    map[string][]int32 // rules by name: of the last file first, and of each the first line
	rules    []int32            // the expressions that are asked from here on

	once sync.Once
	dir  *Dir // made by once
}

// LoadedFile returns the file contexts of the policy that root/etc/selinux/config
// names; root is "" for this system.
func LoadedFile(root string) (string, error) {
	const tag = "SELINUXTYPE="
	config := filepath.Join(root, "/etc/selinux/config")
	text, err := os.ReadFile(config)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	kind := "targeted" // as libselinux has it where nothing is said
	for line := range strings.Lines(string(text)) {
		line = strings.TrimFunc(line, isSpace)
		if len(line) > len(tag) && strings.EqualFold(line[:len(tag)], tag) {
			kind = strings.TrimFunc(line[len(tag):], isSpace)
		}
	}
	return filepath.Join(root, "/etc/selinux", kind, "contexts/files/file_contexts"), nil
}

// Load reads file and those that belong to it: file.homedirs, file.local, file.subs
// and file.subs_dist, each if it is there.
func Load(file string) (*Set, error) {
	s := newSet()
	for _, part := range []struct {
		suffix string
		add    func(file, text string) error
	}{
		{"", s.addRules},
		{".homedirs", s.addRules},
		{".local", s.addRules},
		{".subs", s.subs.local.read},
		{".subs_dist", s.subs.dist.read},
	} {
		text, err := os.ReadFile(file + part.suffix)
		if part.suffix != "" && errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = part.add(file+part.suffix, string(text))
		}
		if err != nil {
			return nil, err
		}
	}
	s.ready()
	return s, nil
}

// Rules are all, in the order in which they were read. They may not be changed.
func (s *Set) Rules() []Rule { return s.rules }

func newSet() *Set {
	s := &Set{root: &node{path: "/"}}
	s.init(s)
	return s
}

// ready is called when all is read.
func (s *Set) ready() {
	s.subs.find()
	s.top = (&Dir{set: s}).enter(s.root, s.none)
}

// at returns the node of path, which begins and ends with a slash.
func (s *Set) at(path string) *node {
	n := s.root
	for i := 1; i < len(path); {
		end := i + strings.IndexByte(path[i:], '/')
		next := n.children[path[i:end]]
		if next == nil {
			next = &node{path: path[:end+1]}
			if n.children == nil {
				n.children = map[string]*node{}
			}
			n.children[path[i:end]] = next
		}
		n, i = next, end+1
	}
	return n
}
