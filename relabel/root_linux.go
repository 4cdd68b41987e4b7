// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"context"
	"errors"
	"io/fs"

	"github.com/fastlabel/fastlabel/internal/mountinfo"
	"github.com/fastlabel/fastlabel/relabel/internal/commit"
	"github.com/fastlabel/fastlabel/relabel/internal/mounts"
	"github.com/fastlabel/fastlabel/relabel/internal/policy"
	"github.com/fastlabel/fastlabel/relabel/internal/sys"
	"github.com/fastlabel/fastlabel/relabel/internal/xattrio"
)

// openCommit opens the label of the root, which is enclosed.
func (r *run) openCommit(root *mount) (c *commit.Root, err error) {
	top := root.top
	c, err = commit.Open(commit.Run{
		FD: int(top.fd), Path: root.Path, Want: r.want, Dated: root.Dated,
		DryRun: r.o.inner.check, NoSeal: r.o.Advanced.NoSeal, NoSync: r.o.Advanced.NoSync, Since: r.o.Trust == TrustUnchanged,
		At:      func(call string) { root.activity.At(call, root.Path) },
		Note:    r.note,
		Failed:  r.failed,
		Sum:     r.met,
		Partial: func() bool { return r.partial(root) },
		Refused: func(e sys.Errno) error { return r.refused(root, e) },
		Labelled: func(wrote bool) {
			top.outcome = right
			if wrote {
				top.outcome = written
			}
			r.recount(skipped, top.outcome) // until now it counted as left alone
			if wrote {
				r.change(top, xattrio.Target{}, c.Found().String())
			}
			revoke := c.Revoke
			r.second.Store(&revoke)
		},
		Withheld: func() {
			if top.outcome != skipped && !top.spoiled {
				r.recount(top.outcome, skipped)
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
	r.mu.Lock()
	defer r.mu.Unlock()
	t := r.total
	return commit.Sum{Seen: t.seen, Written: t.of[written], Skipped: t.of[skipped], Failed: t.of[failure]}
}

// partial says whether the run leaves anything beneath the root to others.
func (r *run) partial(root *mount) bool {
	return len(r.bounds.Excluded) > 0 || len(mountinfo.Beneath(r.proc.Mounts, root.Real)) > 0
}

// refused is the error of a root whose label was refused by e.
func (r *run) refused(root *mount, e sys.Errno) error {
	err := error(e)
	io := xattrio.New("")
	if has, _, unread := io.Read(xattrio.Target{FD: int(root.top.fd)}); unread == 0 && !has.None && !has.Long && r.proc.SELinux { // it may have the seal
		err = r.policy.Denial(has.String(), r.want, sys.KindDir, e)
	}
	if st, unread := sys.Fstatx(int(root.top.fd)); unread == 0 {
		if why := policy.Locked(st, e); why != nil {
			err = why
		}
	}
	return r.fatal(&fs.PathError{Op: "fsetxattr", Path: root.Path, Err: err})
}

// reread labels the root's own entries anew, and says how many were wrong.
func (r *run) reread(ctx context.Context, root *mount) (int64, error) {
	root.activity.At("openat", root.Path)
	fd, e := mounts.Reopen(int(root.top.fd))
	root.activity.At("", "")
	if e != 0 {
		return 0, pathError("openat", root.Path, e)
	}
	defer sys.Close(fd)
	top := &dir{mount: root, fd: int32(fd), outcome: root.top.outcome, rereading: true}
	before := r.counted(written)
	r.guesses = false
	err := r.walk(ctx, r.main, root, top)
	root.top.spoiled = top.spoiled
	return r.counted(written) - before, err
}

// heed stops the run when its root is not its own any more. It is asked now and then,
// by whichever worker comes first.
func (w *worker) heed() {
	if w.commit == nil || !w.commit.Due() {
		return
	}
	w.now(xattrio.Fgetxattr)
	if err := w.commit.Ours(); errors.Is(err, ErrOvertaken) {
		w.halt(err)
	}
}
