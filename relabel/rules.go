// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"context"
	"errors"
	"strings"

	"github.com/fastlabel/fastlabel/internal/secctx"
	"github.com/fastlabel/fastlabel/internal/sys"
	"github.com/fastlabel/fastlabel/internal/walk"
)

// Apply gives root and everything beneath it labels by rules: what restorecon does, or a change of
// a part of each label. Every label is read before it is written. A run that is interrupted leaves
// some entries with the former labels. So a root in which anything is written, and each mount
// beneath, is not trusted by any Skip until Tree commits it (an attribute, CAP_SYS_ADMIN).
//
// With Contexts the real path of the root counts, but a link at its end is not followed. Every root
// is allowed then, / and the kernel's own filesystems too; beneath a root these are skipped, but
// for /dev and /sys where SELinux is on.
//
// A file of several names for which rules have different labels gets one of these, and each run
// writes it anew: LinksError names it.
//
// Report.Skipped has also what no rule names, and what has a customizable type. The options Skip,
// NoSeal, Sync and Exact do not count. The errors are those of Tree, and one where Parts and Contexts
// contradict each other.
func Apply(ctx context.Context, root string, by Rules, o *Options) (Report, error) {
	return apply(ctx, root, by, o.orZero(), inner{})
}

// VerifyApply is Apply without a write, as Verify is Tree.
func VerifyApply(ctx context.Context, root string, by Rules, o *Options) (Report, error) {
	return apply(ctx, root, by, o.orZero(), inner{dry: true})
}

// Rules choose the label of each entry, and the parts of its label that stay: see Apply.
type Rules struct {
	Contexts Contexts // has the label for the path of each entry; nil: Label is that of all
	Label    string
	// Parts are written, and the other parts of an entry's label stay; an entry without a
	// label is then a failure. At 0 the whole label is written. With Contexts it is 0,
	// restorecon's -F, or PartType: an entry keeps a type that the policy lists as
	// customizable, and one without a label gets the whole.
	Parts    Parts
	RootOnly bool // nothing beneath the root is labelled
}

// Contexts choose a label by path and kind: package contexts, beneath this one, has those of a
// policy, as a Set. What embeds one is taken for that Set: to change what it answers keep it in a
// named field. Several goroutines call them at a time.
type Contexts interface {
	// Label returns the label of path, which is absolute; "" leaves what it has. kind is a
	// directory record's d_type, such as syscall.DT_REG.
	Label(path string, kind uint8) (string, error)
	// Retype returns has with the type of want, or "" if has stays. custom says that it
	// stays because its type is customizable.
	Retype(has, want string) (label string, custom bool, err error)
}

// byDirectory are Contexts that need no path of each entry: those of package contexts.
type byDirectory interface {
	Top(path string, kind sys.Kind) (*walk.Want, error)
}

// want returns what is wanted of path, and of what is beneath it.
func (r Rules) want(path string, kind sys.Kind) (*walk.Want, error) {
	if c, is := r.Contexts.(byDirectory); is {
		return c.Top(path, kind)
	}
	label, err := r.Contexts.Label(path, uint8(kind))
	return &walk.Want{Label: label, Rules: &byPath{r.Contexts, strings.TrimRight(path, "/") + "/"}}, err
}

// byPath asks Contexts about what is in dir, a path with a slash at its end.
type byPath struct {
	Contexts
	dir string
}

func (b *byPath) Entry(name []byte, kind sys.Kind) (string, error) {
	return b.Label(b.dir+string(name), uint8(kind))
}

func (b *byPath) Beneath(name []byte) *walk.Want {
	return &walk.Want{Rules: &byPath{b.Contexts, b.dir + string(name) + "/"}}
}

// Parts of a label.
type Parts uint8

const (
	PartUser Parts = 1 << iota
	PartRole
	PartType
	PartLevel
)

// rewrite is the type of Change in a walk.Job, where it is described.
type rewrite func(has, want string) (string, walk.Outcome, error)

// rewrite returns nil where what is wanted is written whatever is there.
func (r Rules) rewrite() (rewrite, error) {
	switch {
	case r.Parts == 0:
		return nil, nil
	case r.Contexts != nil && r.Parts != PartType:
		return nil, errors.New("by file contexts a whole label is written, or its type alone")
	case r.Parts&PartLevel != 0 && fieldsOf(r.Label)[3] == "":
		return nil, errors.New("the label has no level to be written")
	}
	return r.over, nil
}

// over returns what is written where want is wanted and has, another label, was read.
func (r Rules) over(has, want string) (to string, o walk.Outcome, err error) {
	switch {
	case r.Contexts != nil:
		var custom bool
		if to, custom, err = r.Contexts.Retype(has, want); custom {
			return "the type " + fieldsOf(has)[2] + " is customizable, and may be meant", walk.Skipped, nil
		}
	case has == "":
		err = errors.New("no label, so no part to change: give the whole label")
	default:
		part := func(p Parts, i int) string {
			if r.Parts&p == 0 {
				return ""
			}
			return fieldsOf(want)[i]
		}
		to, err = secctx.Compose(has, part(PartUser, 0), part(PartRole, 1), part(PartType, 2), part(PartLevel, 3))
	}
	switch {
	case err != nil:
		return "", walk.Failed, err
	case to == "" || to == has:
		return "", walk.Right, nil
	}
	return to, walk.Written, nil
}

// fieldsOf returns user, role, type and level of a label.
func fieldsOf(label string) (f [4]string) {
	copy(f[:], strings.SplitN(label, ":", len(f)))
	return f
}
