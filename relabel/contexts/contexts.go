// SPDX-License-Identifier: Apache-2.0

// Package contexts reads the file contexts of a policy, by which relabel.Apply labels: a label for
// a path and a kind of file.
package contexts

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/fastlabel/fastlabel/internal/fcontexts"
	"github.com/fastlabel/fastlabel/internal/secctx"
	"github.com/fastlabel/fastlabel/internal/sys"
	"github.com/fastlabel/fastlabel/internal/walk"
)

// Set is the file contexts of a policy: a relabel.Contexts. It may be used by many runs.
type Set struct {
	set    *fcontexts.Set
	custom fcontexts.Customizable
	root   string // what is taken for /; "" is that itself
}

// Load reads the file contexts in file, and those that belong to it: the names with .homedirs,
// .local, .subs and .subs_dist behind it. The list of customizable types is the one in the
// directory above. file "" is that of the policy that /etc/selinux/config names. What is wrong
// with a line is an error with its number, as is a context of another form than USER:ROLE:TYPE or
// USER:ROLE:TYPE:LEVEL; a pattern that cannot be used fails the entries that it might be about.
func Load(file string) (*Set, error) { return LoadRoot("/", file) }

// LoadRoot is Load for what is in the directory root, which gets the labels that it would have
// if root were /, as a system image. file "" is that of the policy in root. Customizable types
// are those of the policy that has file.
func LoadRoot(root, file string) (*Set, error) {
	root, err := filepath.EvalSymlinks(root)
	if err == nil {
		root, err = filepath.Abs(root)
	}
	if err != nil {
		return nil, err
	}
	s := &Set{root: strings.TrimSuffix(root, "/")}
	if file == "" {
		if file, err = s.own(); err != nil {
			return nil, err
		}
	}
	if s.set, err = fcontexts.Load(file); err != nil {
		return nil, err
	}
	right := make(map[string]bool)
	for _, r := range s.set.Rules() {
		if r.Context == "" || right[r.Context] {
			continue
		}
		if _, err := secctx.Canonical(r.Context); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", r.File, r.Line, err)
		}
		right[r.Context] = true
	}
	s.custom, err = fcontexts.LoadCustomizable(file)
	return s, err
}

// own returns the file contexts of the policy in s.root. An absolute link there would lead to
// those of another system.
func (s *Set) own() (file string, err error) {
	if file, err = fcontexts.LoadedFile(s.root); err != nil {
		return "", err
	}
	for _, path := range []string{s.root + "/etc/selinux/config", file} {
		real, err := filepath.EvalSymlinks(path)
		if err == nil && !strings.HasPrefix(real, s.root+"/") {
			return "", fmt.Errorf("%s leads out of %s, to %s", path, s.root, real)
		}
	}
	return file, nil
}

// Notes lists the lines of one file that have different contexts for the same paths, in sentences
// for people.
func (s *Set) Notes() []string { return s.set.Notes }

// Image reports whether a directory is taken for /: then relabel.Apply leaves no attribute on it.
func (s *Set) Image() bool { return s.root != "" }

// find returns path as it is in the root directory, and the rule for it.
func (s *Set) find(path string, kind uint8) (in string, rule *fcontexts.Rule, err error) {
	in, ok := strings.CutPrefix(path, s.root)
	if in = cmp.Or(in, "/"); !ok || in[0] != '/' {
		return "", nil, fmt.Errorf("it does not lie in %s, which is to be taken for /", s.root)
	}
	rule, err = s.set.Lookup(in, fcontexts.Kind(kind))
	return in, rule, err
}

// Label returns the label of path, "" if no rule has one.
func (s *Set) Label(path string, kind uint8) (string, error) {
	_, rule, err := s.find(path, kind)
	return label(rule), err
}

// Top is for relabel.Apply: the label of path, and the rules for what is beneath it, by names alone.
func (s *Set) Top(path string, kind sys.Kind) (*walk.Want, error) {
	in, rule, err := s.find(path, uint8(kind))
	return &walk.Want{Label: label(rule), Rules: &directory{rules: s.set.Dir(in)}}, err
}

// Retype returns has with the type of want, or "" if has stays. custom says that it stays
// because its type is customizable.
func (s *Set) Retype(has, want string) (label string, custom bool, err error) {
	return s.custom.Change(has, want, false)
}

// directory has the rules of what is in it.
type directory struct {
	rules *fcontexts.Dir
	want  walk.Want // of which these are the rules; not of a top
}

func (d *directory) Entry(name []byte, kind sys.Kind) (string, error) {
	rule, err := d.rules.Lookup(name, fcontexts.Kind(kind))
	return label(rule), err
}

// Beneath is the same Want for all directories that no rule distinguishes.
func (d *directory) Beneath(name []byte) *walk.Want {
	rules := d.rules.Child(name)
	if rule, all := rules.All(); all {
		return &walk.Want{Label: label(rule)}
	}
	if rules == d.rules && d.want.Rules != nil {
		return &d.want
	}
	beneath := &directory{rules: rules}
	beneath.want.Rules = beneath
	return &beneath.want
}

// label is that of a rule; "" where there is none, or none is to be.
func label(r *fcontexts.Rule) string {
	if r == nil {
		return ""
	}
	return r.Context
}
