// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"context"
	"errors"
	"sync"
	"syscall"

	"github.com/fastlabel/fastlabel/internal/commit"
	"github.com/fastlabel/fastlabel/internal/mounts"
	"github.com/fastlabel/fastlabel/internal/policy"
	"github.com/fastlabel/fastlabel/internal/sys"
	"github.com/fastlabel/fastlabel/internal/walk"
)

// Labels by rules. No label on the root says that all is done: there is no seal, no commit and no
// second reading, and the root comes first. Lock, confinement, skipping and counts are Tree's.

type rules struct {
	Rules
	change    rewrite                      // nil: what is wanted is written
	trustless map[mounts.ID]mounts.Refused // what Tree refuses, and so nobody trusts
}

func apply(ctx context.Context, path string, by Rules, o Options, in inner) (Report, error) {
	r := newRelabelling(o, in, path, by.Label)
	r.rules = &rules{Rules: by}
	return r.execute(ctx, r.apply)
}

func (r *relabelling) apply(ctx context.Context) (err error) {
	rules := r.rules
	if rules.change, err = rules.rewrite(); err != nil {
		return err
	}
	defer r.close()
	err = r.open(ctx, rules.Contexts == nil && rules.Parts == 0)     // else no entry need get that label
	if rules.Contexts != nil && errors.Is(err, mounts.ErrExcluded) { // scripts give restorecon the same list for each path
		r.account.skip(r.path, mounts.ErrExcluded.Error())
		return r.done(nil)
	}
	if err != nil {
		return err
	}
	if err := r.lock(ctx); err != nil {
		return err
	}
	defer r.volumeLock.Release()
	if err := r.learn(); err != nil {
		return rootError(err)
	}
	if rules.Contexts != nil && r.proc.SELinux {
		rules.change = asPrinted(r.policy, rules.change)
	}
	if _, _, err := r.trustOf(r.root); err != nil {
		return err
	}
	var d doubt
	defer r.trustAgain(r.root, &d, true)
	if err := r.labelMount(ctx, r.root, &d); err != nil {
		return err
	}
	if !rules.RootOnly && r.root.Stat.Kind == sys.KindDir {
		if err := r.submounts(ctx); err != nil {
			return err
		}
	}
	return r.done(r.failures())
}

// want returns what is wanted of the top of m and of what is in it; nil: the label of the run.
func (r *rules) want(m *mounts.Mount) (*walk.Want, error) {
	if r == nil || r.Contexts == nil {
		return nil, nil
	}
	if m.Real == "" {
		return nil, syscall.ENAMETOOLONG
	}
	return r.Rules.want(m.Real, m.Stat.Kind)
}

// doubt records what distrust did to a mount.
type doubt struct {
	is, first bool  // it is not trusted; it was
	before    int64 // entries that were written by then
}

// distrust has nobody trust m, before a run by rules writes in it.
func (r *relabelling) distrust(m *mounts.Mount, d *doubt) (e sys.Errno) {
	if r.rules == nil || r.inner.dry {
		return 0
	}
	// A system image is what / is when it runs; and each attribute would be one of the image.
	of, is := r.rules.Contexts.(interface{ Image() bool })
	if _, refused := r.rules.trustless[mounts.IDOf(m.Stat)]; refused || is && of.Image() {
		return 0
	}
	m.Now("fsetxattr")
	defer m.Now("")
	d.before = r.account.of(walk.Written)
	d.first, e = commit.ClaimRules(m.Top, r.order(m, m.Top))
	d.is = e == 0
	return e
}

// trustAgain follows distrust when the walk of m has ended. If nothing was written in m it is trusted
// as before; whole says that the walk has covered what is mounted beneath m.
func (r *relabelling) trustAgain(m *mounts.Mount, d *doubt, whole bool) {
	wrote := r.account.of(walk.Written) > d.before
	if !d.is || !wrote && (!d.first || !whole) {
		return
	}
	m.Now("removexattr")
	defer m.Now("")
	fd, e := mounts.Reopen(m.At)
	if e == 0 && wrote { // a run that shares no lock may have committed it since
		_, e = commit.ClaimRules(fd, r.order(m, fd))
	} else if e == 0 {
		e = commit.Unclaim(fd)
	}
	sys.Close(fd)
	if e != 0 {
		r.account.note("%s: what an earlier run left on it could not be removed: %v", m.Path, e)
	}
}

// asPrinted returns change for labels as the loaded policy prints them. A type that is an alias
// is read back by its other name, and each run would write it again.
func asPrinted(loaded *policy.Policy, change rewrite) rewrite {
	var printed sync.Map // by label
	return func(has, want string) (string, walk.Outcome, error) {
		as, known := printed.Load(want)
		if !known {
			as, _, _ = loaded.Know(want) // one that it does not know is refused when it is written
			printed.Store(want, as)
		}
		want = as.(string)
		switch {
		case has == want:
			return "", walk.Right, nil
		case change == nil:
			return want, walk.Written, nil
		}
		return change(has, want)
	}
}
