// SPDX-License-Identifier: Apache-2.0

// Package since says how much of a directory can have changed since an earlier run.
//
// TrustUnchanged rests on the mark of an earlier run (see internal/commit): when that
// began by which everything beneath the root has the label. What was created in a
// directory since, renamed into it or removed from it has moved the directory's
// change time (ctime) past that, and a change time cannot be set back. So a
// directory with an older one holds what it held, and need not be read; only the
// directories in it are looked at in turn, and so are subvolumes of btrfs in it.
//
// A directory that was moved here from outside the tree may hold anything, under
// old change times. But the rename has moved two: that of the directory it is in
// now, and its own (rename sets it on the filesystems that sys.KeepsTimes names,
// though no standard asks for it). Where both are new, all beneath is read.
//
// The root's own entries are always read: the mark is an attribute of the root,
// and to write it moves the change time that would tell.
package since
