// SPDX-License-Identifier: Apache-2.0

package relabel

import "context"

// Shard is one of Of parts of a tree, from 0 to Of-1, for Advanced.Shard. Several machines
// that share a volume label one part each, at any times, and leave a proof on its root when
// they are done. When all have, CommitShards labels the root. Until then it is sealed, also
// if it had the label before.
//
// The parts are alike where the first three levels hold many entries; a directory of the
// third level belongs to one part, with all that is beneath it. The caller names each of up
// to 32 parts, and repeats one that was killed or has failed. A run to another label in
// between, or of another number of shards, or with another Exclude, OneFilesystem or
// HardLinks, makes all proofs void. Of several shards on one machine one works at a time. A
// shard waits up to ten seconds for the seal of one that is about to begin.
//
// A shard has no meaning with Check, TrustUnchanged, NoSeal, a Recorder or in a Group; and
// what is mounted beneath the root is to be left alone by OneFilesystem. It needs
// CAP_SYS_ADMIN and a filesystem with trusted or user attributes (errors.ErrUnsupported).
// Without trusted ones, as on NFS, what shards leave proves nothing: CommitShards reads
// every label then, and writes what is wrong.
type Shard struct{ Index, Of int }

// CommitShards labels root when of shards have labelled all that is beneath it, and nothing
// else: it is Tree without the walk. The error is ErrShards if not all have left their
// proof, unless root has the label already. The options are those of the shards.
func CommitShards(ctx context.Context, root, label string, of int, o *Options) (Report, error) {
	all := o.orZero()
	all.Advanced.Shard = Shard{Of: of}
	all.inner.commits = true
	return Tree(ctx, root, label, &all)
}
