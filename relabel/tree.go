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
