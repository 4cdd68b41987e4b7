// SPDX-License-Identifier: Apache-2.0

package relabel

import "context"

// Tree gives root and everything beneath it the security context label. The
// Report says how far it came, also beside an error. The error is nil only if
// nothing failed: the Report is then Complete.
//
// Errors: ErrLabel, ErrRefused, errors.ErrUnsupported where the filesystem
// has no labels, the context's cause (context.Cause), an *fs.PathError for one
// failure and an *IncompleteError for several.
//
// The work is done by other threads than the caller's: where that alone has another
// mount namespace or root directory the error is ErrRefused; a working directory that it
// alone has does not count.
func Tree(ctx context.Context, root, label string, o *Options) (Report, error) {
	r, err := tree(ctx, root, label, o.orZero(), probe)
	goOn(err)
	return r, err
}

// Check is Tree without a write: it reads every label, and locks and seals nothing.
// Report.Written counts the entries that have another label, which Trace.Change is
// told; Report.Complete says that there are none.
func Check(ctx context.Context, root, label string, o *Options) (Report, error) {
	all := o.orZero()
	all.inner.check = true
	return Tree(ctx, root, label, &all)
}

// Inspect reads what root says of itself, in constant time and without a walk:
// whether it has label, which vouches for what lies deeper, and whether a relabel to it
// was interrupted. With TrustTop, Status.Labelled says that root's own entries have
// label too; with any other Trust it is root's label alone. How much is mounted on the
// machine makes no difference. A mount that gives every file one label has that.
//
// It has no context, and returns when the filesystem answers. While four calls of
// Inspect for the same root have waited for it for a second a further one is a *HungError
// at once; so is each while 256 in all have, or those that have half of the files
// that the process may open. To read the entries does not count.
func Inspect(root, label string, t Trust) (Status, error) { return inspect(root, label, t) }

// Status is what a root says of the tree beneath it: see Inspect.
type Status struct {
	// Label is the root's own label; "" if it has none.
	Label string
	// Labelled says that what was asked for has the label.
	Labelled bool
	// Interrupted says that a relabel to the label did not complete, or is at work.
	Interrupted bool
}
