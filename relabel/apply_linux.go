// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/fastlabel/fastlabel/relabel/internal/mounts"
	"github.com/fastlabel/fastlabel/relabel/internal/sys"
	"github.com/fastlabel/fastlabel/relabel/internal/walk"
	"github.com/fastlabel/fastlabel/relabel/internal/xattrio"
)

// Labels by rules. The path is Tree's without what makes the root vouch for the tree:
// where labels differ by path, or keep parts of what was there, no label on the root says
// so. There is no seal, no commit and no second reading, and the root comes first, like
// any directory. What holds is the lock, the confinement, what is left alone, and counts.

// applying is one call of Apply.
type applying struct {
	*run
	rules Rules
}

func apply(ctx context.Context, path string, rules Rules, o Options, ask func() capabilities) (Report, error) {
	a := &applying{run: newRun(o, path, rules.Label), rules: rules}
	return a.lead(ctx, func(ctx context.Context) error { return a.all(ctx, path, ask) })
}

// all is the whole path.
func (a *applying) all(ctx context.Context, path string, ask func() capabilities) error {
	var err error
	if a.changes, err = a.rules.inside().Change(); err != nil {
		return err
	}
	if a.rules.Contexts == nil {
		if err := a.wanted(a.rules.Label); err != nil {
			return err
		}
	}
	err = a.opened(ctx, path, ask, a.ready, func(ctx context.Context, root *mount) error {
		return a.locked(ctx, root, a.tree)
	})
	if a.rules.Contexts != nil && errors.Is(err, mounts.ErrExcluded) { // scripts give restorecon the same list for each path
		a.Leave(path, mounts.ErrExcluded.Error())
		a.tell(func(report *Report) { report.Complete = true })
		return nil
	}
	return err
}

// ready sets which labels are wanted, and which places are refused.
func (a *applying) ready() error {
	a.trustless = a.bounds.Refused
	switch {
	case a.rules.Contexts != nil:
		a.bounds.Refused, a.bounds.Kernels = nil, true
		a.wants = a.rules.Contexts.Top
	case a.rules.Parts == 0: // else no entry need get that label
		return a.askPolicy()
	}
	return nil
}

// tree labels the root, and what is beneath it.
func (a *applying) tree(ctx context.Context, root *mount) error {
	if err := a.learn(root); err != nil {
		return a.fatal(err)
	}
	if a.rules.Contexts != nil && !root.Told() {
		return fmt.Errorf("%s: %w: rules are about a path, and this is longer than the kernel takes", root.Path, errors.ErrUnsupported)
	}
	if a.rules.Contexts != nil && a.proc.SELinux {
		a.changes = a.asPrinted(a.changes)
	}
	io := xattrio.New("")
	a.main.At("getxattr", root.Path)
	_, op, e := io.Read(xattrio.Target{FD: root.At, Pinned: true})
	a.main.At("", "")
	if e != 0 {
		return a.fatal(pathError(op, root.Path, e))
	}
	root.topOnly = a.rules.RootOnly
	defer a.settle(root, true)
	if err := a.cross(ctx, a.main, root); err != nil {
		return err
	}
	if root.want != nil && root.want.Label == "" {
		a.Skip(root.Path, "no rule has a label for it")
	}
	if !root.topOnly && root.Stat.Kind == sys.KindDir {
		if err := a.submounts(ctx, root); err != nil {
			return err
		}
	}
	if a.Counted(walk.Failed) > 0 {
		return a.fatal(a.failures())
	}
	a.tell(func(report *Report) { report.Complete = !a.o.inner.check || a.Counted(walk.Written) == 0 })
	return nil
}

// asPrinted is change with the labels of rules as the loaded policy prints them. A type
// that is an alias is read back by its other name, and each run would write it again.
func (a *applying) asPrinted(change func(has, want string) (string, walk.Outcome, error)) func(has, want string) (string, walk.Outcome, error) {
	var printed sync.Map // by label
	return func(has, want string) (string, walk.Outcome, error) {
		as, known := printed.Load(want)
		if !known {
			as, _, _ = a.policy.Know(want) // one that it does not know is refused when it is written
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
