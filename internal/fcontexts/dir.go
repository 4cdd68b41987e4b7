// SPDX-License-Identifier: Apache-2.0

package fcontexts

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
)

// Dir is a directory, as far as the rules tell it from others: those that none tells
// apart share one.
type Dir struct {
	set  *Set
	at   *state        // after the path and a slash
	node *node         // nil where no rule names anything beneath
	sub  *substitution // nil where nothing beneath is replaced
	hard *hardRules    // nil where none applies
}

// Dir returns the directory path, which is absolute.
func (s *Set) Dir(path string) *Dir {
	d := s.top.with(&s.subs.root)
	for name := range strings.SplitSeq(path, "/") {
		if name != "" {
			d = d.Child([]byte(name))
		}
	}
	return d
}

// Lookup returns the rule for path, which is absolute; nil if there is none.
func (s *Set) Lookup(path string, kind Kind) (*Rule, error) {
	if path == "" || path[0] != '/' {
		return nil, nil
	}
	return s.lookup(s.subs.apply(clean(path)), kind)
}

// lookup is Lookup for a path as it is after substitution.
func (s *Set) lookup(path string, kind Kind) (*Rule, error) {
	end := strings.LastIndexByte(path, '/') + 1
	return s.dir(path[:end], nil).Lookup([]byte(path[end:]), kind)
}

// dir returns the directory whose path after substitution is path, with a slash at
// the end.
func (s *Set) dir(path string, sub *substitution) *Dir {
	d := s.top
	for rest := path[1:]; rest != ""; {
		var name string
		name, rest, _ = strings.Cut(rest, "/")
		d = d.child([]byte(name), nil)
	}
	return d.with(sub)
}

// with returns d as the directory beneath which sub tells what is replaced.
func (d *Dir) with(sub *substitution) *Dir {
	if sub == nil || len(sub.children) == 0 {
		return d
	}
	e := *d
	e.sub = sub
	return &e
}

// clean removes doubled slashes and one at the end.
func clean(path string) string {
	for strings.Contains(path, "//") {
		path = strings.ReplaceAll(path, "//", "/")
	}
	if len(path) > 1 {
		path = strings.TrimSuffix(path, "/")
	}
	return path
}

// Child returns the directory name in d.
func (d *Dir) Child(name []byte) *Dir {
	if d.sub == nil {
		return d.child(name, nil)
	}
	sub := d.sub.children[string(name)]
	if sub != nil && sub.to != "" {
		return d.set.dir(sub.to, sub)
	}
	return d.child(name, sub)
}

// child is Child where name itself is not replaced.
func (d *Dir) child(name []byte, sub *substitution) *Dir {
	if d.node != nil {
		if n := d.node.children[string(name)]; n != nil {
			n.once.Do(func() { n.dir = d.enter(n, d.set.beneath(d.at, name)) })
			return n.dir.with(sub)
		}
	}
	at := d.set.beneath(d.at, name)
	if d.hard == nil {
		return at.plain.with(sub)
	}
	hard := &hardRules{d.hard.path + string(name) + "/", d.hard.rules}
	return &Dir{set: d.set, at: at, sub: sub, hard: hard}
}

// enter returns the directory of n, which is in d and which at leads to.
func (d *Dir) enter(n *node, at *state) *Dir {
	at, hard := d.set.enter(at, n)
	c := &Dir{set: d.set, at: at, node: n}
	if d.hard != nil {
		hard = slices.Concat(d.hard.rules, hard)
	}
	if len(hard) > 0 {
		c.hard = &hardRules{n.path, hard}
	}
	return c
}

// All returns the rule of everything beneath d, of whatever name and kind, nil if
// nothing there has one; false where names or kinds tell rules apart.
func (d *Dir) All() (*Rule, bool) {
	if d.node != nil || d.sub != nil || d.hard != nil {
		return nil, false
	}
	a, s := &d.set.automaton, d.at
	if a.next(s, '/') != s || a.next(s, 0xff) != s || !s.flat() {
		return nil, false
	}
	if slices.ContainsFunc(s.accept, func(i int32) bool { return d.set.rules[i].Kind != 0 }) {
		return nil, false
	}
	r, _ := d.set.first(s.accept, 0, nil)
	return r, true
}

// Lookup returns the rule for name in d, nil if there is none. The rule may say that
// name is to have no label. It is an error if name could fit an expression that cannot be
// used, or that takes too long.
func (d *Dir) Lookup(name []byte, kind Kind) (*Rule, error) {
	s := d.set
	if d.sub != nil {
		if sub := d.sub.children[string(name)]; sub != nil && sub.to != "" {
			return s.lookup(sub.self, kind)
		}
	}
	if d.node != nil {
		for _, i := range d.node.exact[string(name)] {
			if r := &s.rules[i]; r.fits(kind) {
				return r, nil
			}
		}
	}
	rest := bytes.TrimSuffix(name, []byte{'\n'})
	at := s.run(d.at, rest)
	if d.hard == nil && len(rest) == len(name) {
		return s.first(at.accept, kind, nil)
	}
	accept := slices.Clone(at.accept)
	if len(rest) < len(name) { // $ matches before it too
		accept = append(accept, s.next(at, '\n').accept...)
	}
	var path []rune
	if d.hard != nil {
		accept = append(accept, d.hard.rules...)
		path = runes(d.hard.path + string(name))
	}
	slices.SortFunc(accept, s.order)
	return s.first(accept, kind, path)
}

// order is that in which libselinux asks rules: those with more of [stem] first, and of these
// the last.
func (s *Set) order(x, y int32) int {
	return cmp.Or(cmp.Compare(s.rules[y].depth, s.rules[x].depth), cmp.Compare(y, x))
}

// first returns the rule for path among those that fit it, in their order: the one read
// last, or, for no label, the first that is later than those before it.
func (s *Set) first(accept []int32, kind Kind, path []rune) (found *Rule, err error) {
	best := int32(-1)
	for _, i := range accept {
		r := &s.rules[i]
		if i <= best || !r.fits(kind) {
			continue
		}
		if r.hard != nil {
			match, err := r.hard.matches(path)
			if err != nil {
				return nil, lineError(r.File, r.Line, "%s: %v", r.Pattern, err)
			}
			if !match {
				continue
			}
		}
		best, found = i, r
		if r.Context == "" {
			break
		}
	}
	return found, nil
}
