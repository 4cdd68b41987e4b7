// SPDX-License-Identifier: Apache-2.0

package relabel

import "github.com/fastlabel/fastlabel/relabel/internal/rules"

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
