// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"context"
	"errors"
	"sync"

	"github.com/fastlabel/fastlabel/relabel/internal/mounts"
	"github.com/fastlabel/fastlabel/relabel/internal/sys"
	"github.com/fastlabel/fastlabel/relabel/internal/walk"
)

// Labels by rules. Labels differ by path, or keep parts of what was there, so no label on the
// root says that all is done: there is no seal, no commit and no second reading, and the root
// comes first, like any directory. Lock, confinement, skipping and counts are those of Tree.

func apply(ctx context.Context, path string, rules Rules, o Options, ask func() capabilities) (Report, error) {
	r := newRun(o, path, rules.Label)
	r.rules = rules
	return r.lead(ctx, func(ctx context.Context) error { return r.apply(ctx, path, ask) })
}

// apply is the whole path.
func (r *run) apply(ctx context.Context, path string, ask func() capabilities) error {
	var err error
	if r.changes, err = r.rules.change(); err != nil {
		return err
	}
	if r.rules.Contexts == nil {
		if err := r.wanted(r.rules.Label); err != nil {
			return err
		}
	}
	defer r.end()
	err = r.begin(ctx, path, ask, r.ready)
	if r.rules.Contexts != nil && errors.Is(err, mounts.ErrExcluded) { // scripts give restorecon the same list for each path
		r.leave(path, mounts.ErrExcluded.Error())
		r.tell(func(report *Report) { report.Complete = true })
		return nil
	}
	if err != nil {
		return err
	}
	if err := r.lock(ctx, r.root); err != nil {
		return err
	}
	return r.applyTo(ctx, r.root)
}

// ready sets which places are refused, and asks the policy for a label that all get.
func (r *run) ready() error {
	r.trustless = r.bounds.Refused
	switch {
	case r.rules.Contexts != nil:
		r.bounds.Refused, r.bounds.Kernels = nil, true
	case r.rules.Parts == 0: // else no entry need get that label
		return r.askPolicy()
	}
	return nil
}

// applyTo labels the root, and what is beneath it.
func (r *run) applyTo(ctx context.Context, root *mount) error {
	if err := r.learn(root); err != nil {
		return r.fatal(err)
	}
	if r.rules.Contexts != nil && r.proc.SELinux {
		r.changes = r.asPrinted(r.changes)
	}
	if _, _, err := r.topHas(root); err != nil {
		return err
	}
	defer r.avow(root, true)
	if err := r.cross(ctx, r.main, root); err != nil {
		return err
	}
	if root.want != nil && root.want.Label == "" {
		r.skip(root.Path, "no rule has a label for it")
	}
	if !r.rules.RootOnly && root.Stat.Kind == sys.KindDir {
		if err := r.submounts(ctx, root); err != nil {
			return err
		}
	}
	if err := r.failures(); err != nil {
		return err
	}
	r.tell(func(report *Report) { report.Complete = !r.o.inner.check || r.Counted(walk.Written) == 0 })
	return nil
}

// asPrinted returns change for labels as the loaded policy prints them. A type that is an alias
// is read back by its other name, and each run would write it again.
func (r *run) asPrinted(change rewrite) rewrite {
	var printed sync.Map // by label
	return func(has, want string) (string, walk.Outcome, error) {
		as, known := printed.Load(want)
		if !known {
			as, _, _ = r.policy.Know(want) // one that it does not know is refused when it is written
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
