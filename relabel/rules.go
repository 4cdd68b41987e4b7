// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"context"

	"github.com/fastlabel/fastlabel/relabel/internal/rules"
)

// Apply gives root and everything beneath it labels by rules: what restorecon does, or a
// change of a part of each label. Every label is read before it is written.
//
// Nothing vouches for the result. A run that is interrupted leaves some entries with the
// former labels and some with the new ones, the root among the latter, and the next run
// completes it. The root's label may be one that a commit of Tree would have left: so a
// root in which anything is written, and each mount beneath, is not trusted by any Trust
// until Tree commits it, where an attribute can say so (CAP_SYS_ADMIN). A container
// runtime, which reads the label alone, is not told, nor who asks a directory in the tree or
// above it.
//
// By file contexts the path that counts is the real one of the root, of which a link at
// its end is not followed, and every root is allowed, / too. Filesystems of the kernel's
// own may be a root. Beneath one they are labelled where SELinux is on, if they are
// mounted on /dev, /sys or beneath; elsewhere they are left alone, as Tree does.
//
// A file of several names that have different labels by rules gets one of these, and each
// run writes it anew: what its other names are is not known to the walk. Check finds it,
// and LinksError names it.
//
// In the Report, Skipped has also what no rule names, what has a customizable type, and
// what From does not fit. Complete says that all else has the label of its rule. Of o it
// goes by all but Trust, NoSeal, Sync and Exact. The errors are those of Tree, and that of
// rules that contradict themselves.
func Apply(ctx context.Context, root string, by Rules, o *Options) (Report, error) {
	r, err := apply(ctx, root, by, o.orZero(), probe)
	goOn(err)
	return r, err
}

// CheckApply is Apply without a write, as Check is Tree.
func CheckApply(ctx context.Context, root string, by Rules, o *Options) (Report, error) {
	all := o.orZero()
	all.inner.check = true
	return Apply(ctx, root, by, &all)
}

// Rules say which label each entry of a tree is to have, and how much of the one that it
// has stays. See Apply.
type Rules struct {
	// Contexts has the label for the path of each entry; nil: Label is that of all.
	Contexts Contexts
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

// Contexts say which label is whose, by path and kind of file: those of a policy, which
// the package contexts beneath this one reads.
type Contexts interface{ rules.Contexts }

// Parts of a label.
type Parts uint8

// The parts of a label.
const (
	PartUser  = Parts(rules.User)
	PartRole  = Parts(rules.Role)
	PartType  = Parts(rules.Type)
	PartLevel = Parts(rules.Level)
)

// Valid is the error of Apply if Parts and Contexts contradict each other, or From is of
// no label.
func (r Rules) Valid() error {
	_, err := r.inside().Change()
	return err
}

func (r Rules) inside() rules.Rules {
	return rules.Rules{Contexts: r.Contexts, Parts: rules.Parts(r.Parts), From: r.From}
}
