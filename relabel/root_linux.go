// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"context"
	"io/fs"

	"github.com/fastlabel/fastlabel/relabel/internal/commit"
	"github.com/fastlabel/fastlabel/relabel/internal/mounts"
	"github.com/fastlabel/fastlabel/relabel/internal/sys"
	"github.com/fastlabel/fastlabel/relabel/internal/walk"
	"github.com/fastlabel/fastlabel/relabel/internal/xattrio"
)

// openCommit opens the label of the root, which is enclosed.
func (r *run) openCommit(root *mount) (c *commit.Root, err error) {
	top := &root.top
	c, err = commit.Open(commit.Run{
		FD: root.Top, Kind: root.Kind, Path: root.Path, Want: r.want, Stale: root.Stale,
		DryRun: r.o.inner.check, NoSeal: r.o.Advanced.NoSeal, Sync: r.o.Sync,
		Order:   func() commit.Order { return r.order(root, root.Top) },
		At:      root.now,
		Note:    r.Note,
		Failed:  r.failed,
		Written: func() int64 { return r.Counted(walk.Written) },
		Refused: func(e sys.Errno) error { return r.refused(root, e) },
		Labelled: func(wrote bool) {
			top.Outcome = walk.Right
			if wrote {
				top.Outcome = walk.Written
			}
			r.Recount(walk.Skipped, top.Outcome) // until now it counted as skipped
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
	return c, r.fatal(err)
}

// refused returns the error where the kernel refused the root's label with e.
func (r *run) refused(root *mount, e sys.Errno) error {
	loaded := r.job(root).Policy // nil where SELinux is off
	now := func(call xattrio.SyscallKind) { root.now(call.String()) }
	defer root.now("")
	err := loaded.Why(xattrio.New(""), xattrio.Target{FD: root.Top}, r.want, e, now)
	return r.fatal(&fs.PathError{Op: "fsetxattr", Path: root.Path, Err: err})
}

// reread labels the root's own entries again, and returns how many were wrong.
func (r *run) reread(ctx context.Context, root *mount) (int64, error) {
	root.now("openat")
	fd, e := mounts.Reopen(root.Top)
	root.now("")
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
