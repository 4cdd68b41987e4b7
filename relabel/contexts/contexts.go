// SPDX-License-Identifier: Apache-2.0

// Package contexts reads the file contexts of a policy, for relabel.Apply: which label
// is whose, by path and kind of file.
package contexts

import (
	"fmt"

	"github.com/fastlabel/fastlabel/internal/fcontexts"
	"github.com/fastlabel/fastlabel/internal/secctx"
	"github.com/fastlabel/fastlabel/relabel/internal/sys"
	"github.com/fastlabel/fastlabel/relabel/internal/walk"
)

// Set is the file contexts of a policy: a relabel.Contexts. It may be used by many runs.
type Set struct {
	set    *fcontexts.Set
	custom fcontexts.Customizable
}

// Load reads the file contexts in file, and those that belong to it: the names with
// .homedirs, .local, .subs and .subs_dist behind it. The list of customizable types is
// the one in the directory above. file "" is that of the policy that /etc/selinux/config
// names. What is wrong with a line is an error with its number, as is a context of another
// form than USER:ROLE:TYPE or USER:ROLE:TYPE:LEVEL; a pattern that cannot be used is an error
// for the entries that it might be about.
func Load(file string) (*Set, error) {
	var err error
	if file == "" {
		if file, err = fcontexts.LoadedFile(""); err != nil {
			return nil, err
		}
	}
	s := &Set{}
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

// Label returns the label of path, "" if no rule has one.
func (s *Set) Label(path string, kind uint8) (string, error) {
	rule, err := s.set.Lookup(path, fcontexts.Kind(kind))
	return label(rule), err
}

// Top has the same, and what is wanted of what is beneath path: a walk looks up names alone.
func (s *Set) Top(path string, kind sys.Kind) (*walk.Want, error) {
	rule, err := s.set.Lookup(path, fcontexts.Kind(kind))
	return &walk.Want{Label: label(rule), Rules: &directory{rules: s.set.Dir(path)}}, err
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

// Beneath is the same Want for all directories that no rule tells apart.
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
