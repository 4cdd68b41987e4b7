// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"context"
	"io/fs"
	"time"

	"github.com/fastlabel/fastlabel/internal/mountinfo"
	"github.com/fastlabel/fastlabel/relabel/internal/commit"
	"github.com/fastlabel/fastlabel/relabel/internal/mounts"
	"github.com/fastlabel/fastlabel/relabel/internal/policy"
	"github.com/fastlabel/fastlabel/relabel/internal/sys"
	"github.com/fastlabel/fastlabel/relabel/internal/walk"
	"github.com/fastlabel/fastlabel/relabel/internal/xattrio"
)

// openCommit opens the label of the root, which is enclosed.
func (r *run) openCommit(root *mount) (c *commit.Root, err error) {
	top := &root.top
	c, err = commit.Open(commit.Run{
		FD: root.Top, Path: root.Path, Want: r.want, Dated: root.Dated, Stale: root.Stale,
		DryRun: r.o.inner.check, NoSeal: r.o.Advanced.NoSeal, NoSync: r.o.Advanced.NoSync, Since: r.o.Trust == TrustUnchanged,
		At:      func(call string) { root.activity.At(call, root.Path) },
		Note:    r.Note,
		Failed:  r.failed,
		Sum:     r.met,
		Partial: func() bool { return r.partial(root) },
		Refused: func(e sys.Errno) error { return r.refused(root, e) },
		Labelled: func(wrote bool) {
			top.Outcome = walk.Right
			if wrote {
				top.Outcome = walk.Written
			}
			r.Recount(walk.Skipped, top.Outcome) // until now it counted as left alone
			if wrote {
				r.Change(root.Path, c.Found().String(), r.want)
			}
			r.Second(c.Revoke)
		},
		Withheld: func() {
			if top.Outcome != walk.Skipped && !top.Spoiled {
				r.Recount(top.Outcome, walk.Skipped)
			}
		},
		Reread: func(ctx context.Context) (int64, error) { return r.reread(ctx, root) },
	})
	if err != nil {
		return nil, r.fatal(err)
	}
	return c, nil
}

// met is what was counted so far.
func (r *run) met() commit.Sum {
	t := r.Total()
	return commit.Sum{Seen: t.Seen, Written: t.Of[walk.Written], Skipped: t.Of[walk.Skipped], Failed: t.Of[walk.Failed]}
}

// partial says whether the run leaves anything beneath the root to others.
func (r *run) partial(root *mount) bool {
	return len(r.bounds.Excluded) > 0 || len(mountinfo.Beneath(r.proc.Mounts, root.Real)) > 0
}

// refused is the error where the kernel refused the root's label with e.
func (r *run) refused(root *mount, e sys.Errno) error {
	var loaded *policy.Policy
	if r.proc.SELinux {
		loaded = r.policy
	}
	now := func(call xattrio.SyscallKind) { root.activity.At(call.String(), root.Path) }
	defer root.activity.At("", "")
	err := loaded.Why(xattrio.New(""), xattrio.Target{FD: root.Top}, r.want, e, now)
	return r.fatal(&fs.PathError{Op: "fsetxattr", Path: root.Path, Err: err})
}

// reread labels the root's own entries anew, and says how many were wrong.
func (r *run) reread(ctx context.Context, root *mount) (int64, error) {
	root.activity.At("openat", root.Path)
	fd, e := mounts.Reopen(root.Top)
	root.activity.At("", "")
	if e != 0 {
		return 0, pathError("openat", root.Path, e)
	}
	defer sys.Close(fd)
	top := walk.Top{FD: fd, Outcome: root.top.Outcome, Rereading: true}
	before := r.Counted(walk.Written)
	if r.writes == walk.Guess {
		r.writes = walk.ReadFirst
	}
	err := r.walk(ctx, r.main, root, &top)
	root.top.Spoiled = top.Spoiled
	return r.Counted(walk.Written) - before, err
}

// readMark has the walk look only at what has changed since the mark of an earlier
// run, where there is one to rely on; or State say how many entries that one met.
func (r *run) readMark(c *commit.Root, root *mount) {
	if r.o.Trust != TrustUnchanged && r.o.Progress == nil {
		return
	}
	k, relied := c.ReadMark()
	switch {
	case relied:
		root.top.Since = time.Unix(0, k.Start)
		r.tell(func(report *Report) { report.Since = root.top.Since })
	case len(r.bounds.Excluded) == 0:
		r.lastRun.Store(k.Entries)
	}
}
