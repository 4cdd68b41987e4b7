// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"context"
	"iter"

	"github.com/fastlabel/fastlabel/relabel/undo"
)

// Restore puts the labels back that a Recorder has kept: pages as Keep was handed
// them, each with memory of its own, of the run that Begin was told of in h. With
// root "" the tree is where it was, at h.Root; that it is the same is made sure
// of, else the error is ErrOtherTree. Any other root is taken at its word, but a
// file for a directory (TestRestoreElsewhere).
//
// An entry that has neither the label that the run gave nor its former one was
// changed since: it is left alone, as is one with another inode number than
// recorded, and Trace.Skip told. In the Report they count as Skipped, entries that are
// gone as Vanished, and those that have their former label already as Right.
//
// The root gets its own label last, if nothing failed; until then it is sealed. It
// stays sealed, and Trace.Note is told, where its former label would vouch for what
// need not have it: where something was left alone, or was created, renamed or
// removed since the run began in a directory that the run labelled, by its modification
// time, or where the record is Partial and entries have the label of the run still.
// Complete says that all is as it was.
//
// By rules there is no seal: the root is put back as any entry, and is not trusted until
// Tree commits it (see Apply).
//
// Of o it goes by Workers (0: one for each processor), NoSeal, NoSync, Progress and
// Trace. The errors are those of Tree, ErrOtherTree, and what pages yields.
func Restore(ctx context.Context, root string, h undo.Header, pages iter.Seq2[undo.Page, error], o *Options) (Report, error) {
	r, err := restore(ctx, root, h, pages, o.orZero(), probe)
	goOn(err)
	return r, err
}

// CheckRestore is Restore without a write. Report.Written counts what Restore would
// write; Complete says that there is nothing.
func CheckRestore(ctx context.Context, root string, h undo.Header, pages iter.Seq2[undo.Page, error], o *Options) (Report, error) {
	all := o.orZero()
	all.inner.check = true
	return Restore(ctx, root, h, pages, &all)
}
