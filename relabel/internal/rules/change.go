// SPDX-License-Identifier: Apache-2.0

// Package rules says what is written over a label that was read, where another is wanted.
package rules

import (
	"errors"
	"strings"

	"github.com/fastlabel/fastlabel/internal/secctx"
	"github.com/fastlabel/fastlabel/relabel/internal/sys"
	"github.com/fastlabel/fastlabel/relabel/internal/walk"
)

// Contexts say which label is whose, by path and kind of file.
type Contexts interface {
	// Top is what is wanted of path, and of what is beneath it.
	Top(path string, kind sys.Kind) (*walk.Want, error)
	// Retype returns has with the type of want, or "" if has stays. custom says that it
	// stays because its type is customizable.
	Retype(has, want string) (label string, custom bool, err error)
}

// Parts of a label.
type Parts uint8

// The parts, in their order.
const (
	User Parts = 1 << iota
	Role
	Type
	Level
)

// Rules are those of relabel, but for where they hold.
type Rules struct {
	Contexts Contexts
	Parts    Parts
	From     string
}

// Change is that of a walk.Job; nil where what is wanted is written whatever is there.
func (r Rules) Change() (func(has, want string) (string, walk.Outcome, error), error) {
	if r.Contexts != nil && r.Parts != 0 && r.Parts != Type {
		return nil, errors.New("by file contexts a whole label is written, or its type alone")
	}
	if r.From == "" {
		if r.Parts == 0 {
			return nil, nil
		}
		return r.change, nil
	}
	from, err := pattern(r.From)
	return func(has, want string) (string, walk.Outcome, error) {
		if !fits(has, from) {
			return "", walk.Skipped, nil
		}
		return r.change(has, want)
	}, err
}

// change says what is written where want is wanted and has, another label, was read.
func (r Rules) change(has, want string) (string, walk.Outcome, error) {
	switch {
	case r.Parts == 0:
		return want, walk.Written, nil
	case r.Contexts != nil:
		to, custom, err := r.Contexts.Retype(has, want)
		if custom {
			to = "the type " + fields(has)[2] + " is customizable, and may be meant"
		}
		return to, outcome(to, custom, err), err
	case has == "":
		return "", walk.Failed, errors.New("it has no label, of which a part could be changed")
	}
	part := func(p Parts, i int) string {
		if r.Parts&p == 0 {
			return ""
		}
		return fields(want)[i]
	}
	to, err := secctx.Compose(has, part(User, 0), part(Role, 1), part(Type, 2), part(Level, 3))
	if to == has {
		to = ""
	}
	return to, outcome(to, false, err), err
}

// outcome is what to, "" for nothing to write, says of an entry.
func outcome(to string, left bool, err error) walk.Outcome {
	switch {
	case err != nil:
		return walk.Failed
	case left:
		return walk.Skipped
	case to == "":
		return walk.Right
	}
	return walk.Written
}

// fields are user, role, type and level of a label.
func fields(label string) (f [4]string) {
	copy(f[:], strings.SplitN(label, ":", len(f)))
	return f
}

// pattern is the parts of from.
func pattern(from string) (parts [4]string, err error) {
	given := strings.SplitN(from, ":", len(parts))
	if len(given) == 3 {
		given = append(given, "*")
	}
	copy(parts[:], given)
	for i, one := range []string{"u", "r", "t", "s0"}[:len(given)] {
		if given[i] == "*" {
			given[i] = one
		}
	}
	label, err := secctx.Canonical(strings.Join(given, ":"))
	var why *secctx.Error
	if errors.As(err, &why) {
		return parts, &secctx.Error{Label: from, Reason: why.Reason + "; write * for any part"}
	}
	if parts[3] != "*" {
		parts[3] = fields(label)[3]
	}
	return parts, nil
}

// fits says whether label is one that from describes.
func fits(label string, from [4]string) bool {
	has := fields(label)
	for i, f := range from {
		if f != "*" && f != has[i] {
			return false
		}
	}
	return label != ""
}
