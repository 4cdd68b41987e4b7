// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"syscall"

	"github.com/fastlabel/fastlabel/internal/mountinfo"
	"github.com/fastlabel/fastlabel/relabel/internal/commit"
	"github.com/fastlabel/fastlabel/relabel/internal/division"
	"github.com/fastlabel/fastlabel/relabel/internal/mounts"
	"github.com/fastlabel/fastlabel/relabel/internal/sys"
	"github.com/fastlabel/fastlabel/relabel/internal/walk"
)

// divides is the level at which a tree is divided into shards. Volumes have a few
// directories in their root or in one beneath it, and seldom few in all of those. What lies
// above is read by every shard.
const divides = 3

// checkShard refuses a shard that has no meaning.
func (r *run) checkShard() error {
	s, a := r.o.Advanced.Shard, r.o.Advanced
	if s == (Shard{}) && !r.o.inner.commits {
		return nil
	}
	why := ""
	switch {
	case s.Of < 1 || s.Of > commit.MostShards:
		why = fmt.Sprintf("there may be 1 to %d shards", commit.MostShards)
	case s.Index >= s.Of || s.Index < 0:
		why = fmt.Sprintf("of %d shards there is none %d", s.Of, s.Index)
	case r.o.inner.check:
		why = "a shard cannot be checked alone"
	case a.NoSeal:
		why = "shards need the seal"
	case a.Recorder != nil:
		why = "shards record nothing"
	case r.o.Trust == TrustUnchanged:
		why = "shards look at everything"
	default:
		r.shard = &commit.Shard{Index: s.Index, Of: s.Of, Level: divides}
		if r.o.inner.commits {
			r.shard.Index = commit.Commits
		}
		return nil
	}
	return errors.New(why)
}

// admitShard refuses a root of which a shard would prove nothing.
func (r *run) admitShard(root *mount) error {
	switch {
	case r.shard == nil:
		return nil
	case root.Stat.Kind != sys.KindDir:
		return fmt.Errorf("%s: %w: only a directory has shards", root.Path, errors.ErrUnsupported)
	case !r.o.OneFilesystem && len(mountinfo.Beneath(r.proc.Mounts, root.Real)) > 0:
		return fmt.Errorf("%s: %w: something is mounted beneath, which other machines may not have: leave it alone", root.Path, errors.ErrUnsupported)
	}
	r.shard.How = r.how(root)
	return nil
}

// how tells options by which entries are labelled, or not, from others.
func (r *run) how(root *mount) uint32 {
	excluded := mounts.Named(r.o.Exclude, root.Real)
	h := fnv.New32a()
	fmt.Fprintf(h, "%q %t %d", excluded, r.o.OneFilesystem, r.o.HardLinks)
	return h.Sum32()
}

// seal begins the work on the root. It says whether there is anything to walk.
func (r *run) seal(ctx context.Context, root *mount, c *commit.Root) (bool, error) {
	switch {
	case r.shard == nil:
		if err := c.Seal(); err != nil {
			return false, err
		}
		return true, c.GiveWay(ctx)
	case r.shard.Index != commit.Commits:
		err := c.Join(ctx)
		if errors.Is(err, syscall.ENOTSUP) || errors.Is(err, syscall.EPERM) {
			err = fmt.Errorf("%s: %w: shards need trusted attributes, and CAP_SYS_ADMIN, or user attributes: %w", root.Path, errors.ErrUnsupported, err)
		}
		root.top.Outcome = walk.Elsewhere // who commits counts it
		r.part = &division.Part{Index: r.shard.Index, Of: r.shard.Of, Level: r.shard.Level}
		return true, err
	}
	if c.Right() {
		c.Again()
		return false, nil
	}
	met, alike, err := c.Gather()
	if err != nil {
		return false, err
	}
	if !c.Proves() {
		r.Note("the filesystem has no trusted attributes, and what shards left in others proves nothing: everything is read")
		return true, nil
	}
	now, err := division.Met(root.Mount)
	if alike = alike && division.Same(met, now); err == nil && !alike {
		r.Note("directories came, went or were renamed while the shards were at work: everything is read")
	}
	return !alike, err
}
