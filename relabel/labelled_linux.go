// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"slices"
	"strings"

	"github.com/fastlabel/fastlabel/internal/secctx"
	"github.com/fastlabel/fastlabel/relabel/internal/commit"
	"github.com/fastlabel/fastlabel/relabel/internal/mounts"
	"github.com/fastlabel/fastlabel/relabel/internal/policy"
	"github.com/fastlabel/fastlabel/relabel/internal/sys"
	"github.com/fastlabel/fastlabel/relabel/internal/xattrio"
)

// Labelled reports whether root bears label, in constant time with depth Root;
// with Top, whether its own entries do too. It says nothing of what lies
// deeper: that is what the root's label vouches for. How much is mounted on the
// machine makes no difference. A mount that gives every file one label has that.
//
// It has no context, and returns when the filesystem answers. While four calls of
// Labelled, Interrupted or LastCommit for the same root have waited for it for a second
// a further one is a *Hung at once; so is each while 256 in all have, or those that have
// half of the files that the process may open. To read what Top reads does not count.
func Labelled(root, label string, depth Depth) (bool, error) {
	r := &run{main: new(task)} // which nobody attends
	at, is, err := r.probe(root, label)
	if at == nil {
		return false, err
	}
	defer r.proc.Close()
	defer at.Close()
	if is && depth == Top {
		is, _, err = r.bears(at, Top)
	}
	return is, err
}

// probe says whether path itself has the label. Who has root closes it, and r.proc.
func (r *run) probe(path, label string) (root *mount, is bool, err error) {
	err = probing.ask("Labelled", path, func() error {
		if root, err = r.look(path, label); err != nil {
			return err
		}
		if is, _, err = r.bears(root, Root); err == nil && !is && r.mayLack(root) {
			err = r.learn(root)
		}
		return err
	})
	return root, is, err
}

// mayLack says whether the table of mounts is to be asked if root can have a label
// of its own: not where the kernel knows no SELinux, or tells of the one mount that
// it can (Linux 6.11).
func (r *run) mayLack(root *mount) bool {
	if options, e := sys.MountOptions(root.At); e == 0 && slices.Contains(strings.Split(options, ","), "seclabel") {
		return false
	}
	return !policy.Off()
}

// Interrupted reports whether root bears the seal of a relabel to label that
// did not come to its end. Where the filesystem does not answer it does as Labelled.
func Interrupted(root, label string) (is bool, err error) {
	err = probing.ask("Interrupted", root, func() error {
		is, err = interrupted(root, label)
		return err
	})
	return is, err
}

func interrupted(root, label string) (bool, error) {
	r := &run{main: new(task)} // which nobody attends
	at, err := r.look(root, label)
	if err != nil {
		return false, err
	}
	defer r.proc.Close()
	defer at.Close()
	ok, have, err := r.bears(at, Root)
	return !ok && have == r.want || secctx.IsSeal(have, r.want), err
}

// look opens root for reading its label.
func (r *run) look(path, label string) (*mount, error) {
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

// trusted fills in the report if what Options.Skip names bears the label.
func (r *run) trusted(root *mount) (bool, error) {
	if r.o.Skip == SkipNone || r.o.Skip == SkipUnchanged {
		return false, nil
	}
	depth := Root
	if r.o.Skip == SkipTop {
		depth = Top
	}
	ok, _, err := r.bears(root, depth)
	if ok {
		r.count(right)
		r.tell(func(report *Report) { report.Trusted, report.Complete = true, true })
	}
	return ok, err
}

// bears reads the root's label, which it returns, and with Top those of the
// root's entries.
func (r *run) bears(root *mount, depth Depth) (bool, string, error) {
	io := xattrio.New(r.want)
	root.activity.At("getxattr", root.Path)
	defer root.activity.At("", "")
	has, op, e := io.Read(xattrio.Target{FD: root.At, Pinned: true})
	if e != 0 {
		return false, "", r.fatal(pathError(op, root.Path, e))
	}
	have := has.String()
	if have == r.want && root.Stat.Kind == sys.KindDir && commit.IsSeal(root.At, have) {
		return false, have, nil // it vouches for nothing
	}
	if have != r.want || depth == Root || root.Stat.Kind != sys.KindDir {
		return have == r.want, have, nil
	}
	root.activity.At("openat", root.Path)
	fd, e := mounts.Reopen(root.At)
	if e != 0 {
		return false, have, pathError("openat", root.Path, e)
	}
	defer sys.Close(fd)
	buf := make([]byte, bufferSize)
	for {
		n, e := sys.Getdents(fd, buf)
		if e != 0 {
			return false, have, pathError("getdents64", root.Path, e)
		}
		if n == 0 {
			return true, have, nil
		}
		for rest := buf[:n]; len(rest) > 0; {
			d, length, err := sys.Parse(rest)
			if err != nil {
				return false, have, err
			}
			rest = rest[length:]
			if sys.IsDot(d.Name) {
				continue
			}
			at, e := sys.Openat(fd, d.Cname(), sys.OpenPath, 0)
			if xattrio.Judge(e) == xattrio.Gone {
				continue
			}
			if e != 0 {
				return false, have, pathError("openat", root.Path+"/"+string(d.Name), e)
			}
			has, op, e := io.Read(xattrio.Target{FD: at, Pinned: true})
			sys.Close(at)
			if e != 0 {
				return false, have, pathError(op, root.Path+"/"+string(d.Name), e)
			}
			if !has.Is(r.want) {
				return false, have, nil
			}
		}
	}
}
