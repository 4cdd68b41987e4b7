// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"context"
	"os"
)

// Tree gives root and everything beneath it the label; a root that is a link is labelled itself. The
// Report says how far it came, also beside an error. The error is nil only if nothing failed: the
// Report is then Complete, unless the root was a file that Options.HardLinks leaves out.
//
// Errors: ErrLabel, ErrRefused, ErrLocked, ErrOvertaken; errors.ErrUnsupported where the filesystem
// has no labels; the context's cause (context.Cause), in a *HungError if a call hangs; an
// *fs.PathError for one failure and an *IncompleteError for several; others, as of a failing disk.
//
// Other threads than the caller's do the work: if the calling thread alone has another mount
// namespace or root directory, the error is ErrRefused.
func Tree(ctx context.Context, root, label string, o *Options) (Report, error) {
	return tree(ctx, root, label, o.orZero(), inner{})
}

// TreeAt is Tree for a root that the caller has opened, if only by O_PATH, and may close when TreeAt
// has returned.
func TreeAt(ctx context.Context, root *os.File, label string, o *Options) (Report, error) {
	return tree(ctx, root.Name(), label, o.orZero(), inner{dir: root})
}

// Verify is Tree without a write, lock or seal: it reads every label, unless Options.Skip finds the
// root trusted. Report.Written and Trace.Change are of the entries that have another label;
// Report.Complete says that there are none.
func Verify(ctx context.Context, root, label string, o *Options) (Report, error) {
	return tree(ctx, root, label, o.orZero(), inner{dry: true})
}

// Inspect reads the label of root, without a walk. With SkipTop, RootState.Labelled says that
// root's own entries have the label too. Without CAP_SYS_ADMIN, which alone sees claims, a root
// that has the label is an error, EPERM.
//
// It returns when the filesystem answers. While four calls for one root have hung for a second,
// or 256 in all, the error is a *HungError at once.
func Inspect(root, label string, s Skip) (RootState, error) { return inspect(root, label, s) }

// RootState is the result of Inspect.
type RootState struct {
	Label       string // the root's own; "" if it has none
	Labelled    bool   // the root has the label, and is trusted for it
	Interrupted bool   // a relabel to the label did not complete, or is at work
}
