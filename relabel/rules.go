// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/fastlabel/fastlabel/internal/fcontexts"
	"github.com/fastlabel/fastlabel/internal/secctx"
	"github.com/fastlabel/fastlabel/relabel/internal/walk"
)

// Rules say which label each entry of a tree is to have, and how much of the one that it
// has stays. See Apply.
type Rules struct {
	// Contexts has the label for the path of each entry; nil: Label is that of all.
	Contexts *Contexts
	Label    string
	// Parts are written, and the other parts of what an entry has stay; one without a
	// label then is a failure. At 0 the whole label is written. With Contexts it is 0,
	// restorecon's -F, or PartType: an entry keeps a type that the policy lists as
	// customizable, and one without a label gets the whole.
	Parts Parts
	// From, if not "", leaves alone what has another label than it says: a label of
	// which any part may be *, for all. A level that is left out stands for all too.
	From string
	// RootOnly leaves alone what is beneath the root.
	RootOnly bool
}

// Parts of a label.
type Parts uint8

// The parts of a label.
const (
	PartUser Parts = 1 << iota
	PartRole
	PartType
	PartLevel
)

// Contexts are the file contexts of a policy: which label is whose, by path and kind of
// file. It may be used by many runs.
type Contexts struct {
	set    *fcontexts.Set
	custom fcontexts.Customizable
}

// LoadContexts reads the file contexts in file, and those that belong to it: the names
// with .homedirs, .local, .subs and .subs_dist behind it. The list of customizable types
// is the one in the directory above. file "" is that of the policy that
// /etc/selinux/config names. What is wrong with a line is an error with its number.
func LoadContexts(file string) (*Contexts, error) {
	var err error
	if file == "" {
		if file, err = fcontexts.LoadedFile(""); err != nil {
			return nil, err
		}
	}
	c := &Contexts{}
	if c.set, err = fcontexts.Load(file); err != nil {
		return nil, err
	}
	c.custom, err = fcontexts.LoadCustomizable(file)
	return c, err
}

// prepare makes the rules ready for use. change is nil where the label that is wanted is
// written whatever is there.
func (r *Rules) prepare() (change func(has, want string) (string, walk.Outcome, error), err error) {
	if r.Contexts == nil {
		if r.Label, err = secctx.Canonical(r.Label); err != nil {
			return nil, err
		}
	} else if r.Parts != 0 && r.Parts != PartType {
		return nil, errors.New("by file contexts a whole label is written, or its type alone")
	}
	var from [4]string
	if r.From != "" {
		if from, err = pattern(r.From); err != nil {
			return nil, err
		}
	}
	switch {
	case r.Parts == 0 && r.From == "":
		return nil, nil
	case r.From == "":
		return r.change, nil
	}
	return func(has, want string) (string, walk.Outcome, error) {
		if !fits(has, from) {
			return "", walk.Skipped, nil
		}
		return r.change(has, want)
	}, nil
}

// change says what is written where want is wanted and has, another label, was read.
func (r *Rules) change(has, want string) (string, walk.Outcome, error) {
	switch {
	case r.Parts == 0:
		return want, walk.Written, nil
	case r.Contexts != nil:
		to, custom, err := r.Contexts.custom.Change(has, want, false)
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
	to, err := secctx.Compose(has, part(PartUser, 0), part(PartRole, 1), part(PartType, 2), part(PartLevel, 3))
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

// pattern checks From, and returns its parts.
func pattern(from string) ([4]string, error) {
	parts := fields(from)
	parts[3] = cmp.Or(parts[3], "*")
	sample := parts
	for i, stand := range [4]string{"u", "r", "t", "s0"} {
		if parts[i] == "*" {
			sample[i] = stand
		}
	}
	label, err := secctx.Canonical(strings.Join(sample[:], ":"))
	if err != nil {
		return parts, fmt.Errorf("from %q: %w", from, err)
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
