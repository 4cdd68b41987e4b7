// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"context"
	"os"
)

// Tree gives root and everything beneath it the security context label. The
// Report says how far it came, also beside an error. The error is nil only if
// nothing failed: the Report is then Complete.
//
// Errors: ErrLabel, ErrRefused, errors.ErrUnsupported where the filesystem
// has no labels, ENAMETOOLONG where the kernel reports no path of root, since that is
// longer than PATH_MAX, the context's cause (context.Cause), an *fs.PathError for one
// failure and an *IncompleteError for several.
//
// The work is done by other threads than the caller's. If that alone has another mount
// namespace or root directory, the error is ErrRefused; its working directory does not count.
func Tree(ctx context.Context, root, label string, o *Options) (Report, error) {
	r, err := tree(ctx, root, label, o.orZero(), inner{})
	goOn(err)
	return r, err
}

// TreeAt is Tree for a root that the caller has opened, whatever lies at its path by now. The
// name of root is for messages.
func TreeAt(ctx context.Context, root *os.File, label string, o *Options) (Report, error) {
	r, err := tree(ctx, root.Name(), label, o.orZero(), inner{dir: root})
	goOn(err)
	return r, err
}

// Verify is Tree without a write: it reads every label, and locks and seals nothing.
// Report.Written and Trace.Change are of the entries that have another label;
// Report.Complete says that there are none.
func Verify(ctx context.Context, root, label string, o *Options) (Report, error) {
	r, err := tree(ctx, root, label, o.orZero(), inner{dry: true})
	goOn(err)
	return r, err
}

// Inspect reads the label of root, in constant time and without a walk: whether it is label,
// and root trusted for it, and whether a relabel to it was interrupted. With SkipTop,
// RootState.Labelled says that root's own entries have label too. A mount that gives every file
// one label has that. A process without CAP_SYS_ADMIN in the initial user namespace cannot see
// whether a root that has the label is trusted: the error is EPERM then.
//
// It has no context, and returns when the filesystem answers. While four calls of Inspect for
// one root have hung for a second, or 256 in all, or as many as have half of the files that
// the process may open, further ones return a *HungError at once.
func Inspect(root, label string, s Skip) (RootState, error) { return inspect(root, label, s) }

// RootState is the state of a root: see Inspect.
type RootState struct {
	// Label is the root's own label; "" if it has none.
	Label string
	// Labelled says that what was asked for has the label.
	Labelled bool
	// Interrupted says that a relabel to the label did not complete, or is at work.
	Interrupted bool
}
