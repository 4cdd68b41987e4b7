// SPDX-License-Identifier: Apache-2.0

package walk

import "github.com/fastlabel/fastlabel/relabel/internal/sys"

// Want is what is wanted of a directory and of all beneath it: one label or, by rules,
// for each entry its own.
type Want struct {
	Label string // with Rules that of the directory alone; "": it is left as it is
	Rules Rules  // of what is in it; nil: Label
}

// Rules say what is wanted of what is in a directory.
type Rules interface {
	// Entry is the label of an entry, be it a directory; "": it is left as it is.
	Entry(name []byte, kind sys.Kind) (string, error)
	// Beneath is what is wanted of the directory name. It is asked once, by the worker
	// that enters it.
	Beneath(name []byte) *Want
}
