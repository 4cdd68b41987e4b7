// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"syscall"
	"time"

	"github.com/fastlabel/fastlabel/relabel/internal/mounts"
	"github.com/fastlabel/fastlabel/relabel/internal/sys"
)

// LastCommit returns what the last run left on root; the zero Commit if there
// is none, or if the caller lacks CAP_SYS_ADMIN, without which it cannot be
// read. It takes two looks at root and none beneath it. Where the filesystem does
// not answer it does as Labelled.
func LastCommit(root string) (last Commit, err error) {
	err = probing.ask("LastCommit", root, func() error {
		last, err = lastCommit(root)
		return err
	})
	return last, err
}

func lastCommit(root string) (Commit, error) {
	r := &run{main: new(task)} // which nobody attends
	var err error
	if r.proc, err = mounts.OpenProc(); err != nil {
		return Commit{}, err
	}
	defer r.proc.Close()
	at, err := r.openRoot(root)
	if err != nil {
		return Commit{}, err
	}
	defer at.Close()
	if err := r.learn(at); err != nil {
		return Commit{}, err
	}
	attr := sys.NewAttr(markName, nil)
	n, e := attr.GetxattrFd(at.At)
	switch e {
	case 0:
	case errNoLabel, errLongLabel, syscall.ENOTSUP, syscall.EPERM:
		return Commit{}, nil
	default:
		return Commit{}, pathError("getxattr", at.Path, e)
	}
	k, ok := parseMark(string(attr.Value(n)))
	if !ok || !k.vouches(k.label, natal(at.At), time.Now()) {
		return Commit{}, nil
	}
	return Commit{k.label, time.Unix(0, k.start), time.Unix(0, k.left), k.entries, k.written}, nil
}
