// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"errors"

	"github.com/fastlabel/fastlabel/internal/mountinfo"
	"github.com/fastlabel/fastlabel/internal/secctx"
	"github.com/fastlabel/fastlabel/relabel/internal/budget"
	"github.com/fastlabel/fastlabel/relabel/internal/caller"
	"github.com/fastlabel/fastlabel/relabel/internal/commit"
	"github.com/fastlabel/fastlabel/relabel/internal/mounts"
	"github.com/fastlabel/fastlabel/relabel/internal/sys"
	"github.com/fastlabel/fastlabel/relabel/internal/walk"
)

func inspect(root, label string, t Trust) (Status, error) {
	r := &run{main: new(caller.Task)} // which is not watched
	var s Status
	var at *mount
	err := probing.Ask(root, func() (err error) {
		if at, err = r.openToRead(root, label); err == nil {
			s, err = r.inspect(at)
		}
		return err
	})
	if h := new(budget.HangError); errors.As(err, &h) {
		calls := make([]HungCall, len(h.Paths))
		for i, path := range h.Paths {
			calls[i] = HungCall{"Inspect", path}
		}
		return s, &HungError{Calls: calls, Cause: h}
	}
	if at == nil {
		return s, err
	}
	defer r.proc.Close()
	defer at.Close()
	if err == nil && s.Labelled && t == TrustTop {
		s.Labelled, err = r.entriesHave(at)
	}
	return s, err
}

// inspect reads what root itself has.
func (r *run) inspect(root *mount) (s Status, err error) {
	if s.Labelled, s.Label, err = r.rootHas(root); err != nil {
		return s, err
	}
	if !s.Labelled && r.mayLack(root) {
		if err := r.learn(root); err != nil {
			return s, err
		}
	}
	byRules := !s.Labelled && commit.Disavowed(root.At)
	// A root that has the label vouches for nothing where it is a seal.
	s.Interrupted = !s.Labelled && s.Label == r.want && !byRules || secctx.IsSeal(s.Label, r.want)
	return s, nil
}

// mayLack says whether the table of mounts is to be asked if root can have a label
// of its own: not where the kernel knows no SELinux, or tells of the one mount that
// it can (Linux 6.11).
func (r *run) mayLack(root *mount) bool {
	if m, e := sys.MountOf(root.At); e == 0 && mountinfo.HasOption(m.Options, "seclabel") {
		return false
	}
	return !r.proc.NoSELinux
}

// openToRead opens root for reading its label.
func (r *run) openToRead(path, label string) (*mount, error) {
	var err error
	if r.want, err = secctx.Canonical(label); err != nil {
		return nil, err
	}
	if err = r.openProc(); err != nil {
		return nil, err
	}
	err = r.askPolicy()
	var at *mount
	if err == nil {
		at, err = r.openRoot(path)
	}
	if err != nil {
		r.proc.Close()
		return nil, err
	}
	return at, nil
}

// trusted fills in the report if what Options.Trust names has the label.
func (r *run) trusted(root *mount) (bool, error) {
	if r.o.Trust != TrustRoot && r.o.Trust != TrustTop {
		return false, nil
	}
	ok, _, err := r.rootHas(root)
	if ok && r.o.Trust == TrustTop {
		ok, err = r.entriesHave(root)
	}
	if ok {
		r.Count(walk.Right)
		r.tell(func(report *Report) { report.Trusted, report.Complete = true, true })
	}
	return ok, err
}

// rootHas says whether the root has the label and vouches by it, and which it has.
func (r *run) rootHas(root *mount) (bool, string, error) {
	root.activity.At("getxattr", root.Path)
	defer root.activity.At("", "")
	vouches, has, op, e := commit.Vouches(root.At, root.Stat.Kind == sys.KindDir, r.want)
	if e != 0 {
		return false, "", r.fatal(pathError(op, root.Path, e))
	}
	return vouches, has, nil
}

// entriesHave says whether the root's own entries have the label: those of a file do.
func (r *run) entriesHave(root *mount) (bool, error) {
	if root.Stat.Kind != sys.KindDir {
		return true, nil
	}
	root.activity.At("openat", root.Path)
	defer root.activity.At("", "")
	fd, e := mounts.Reopen(root.At)
	if e != 0 {
		return false, pathError("openat", root.Path, e)
	}
	defer sys.Close(fd)
	return commit.EntriesHave(fd, root.Path, r.want)
}
