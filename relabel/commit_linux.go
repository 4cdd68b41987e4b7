// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"time"

	"github.com/fastlabel/fastlabel/relabel/internal/commit"
	"github.com/fastlabel/fastlabel/relabel/internal/mounts"
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
	k, e := commit.Last(at.At)
	if e != 0 {
		return Commit{}, pathError("getxattr", at.Path, e)
	}
	if k == (commit.Mark{}) {
		return Commit{}, nil
	}
	return Commit{k.Label, time.Unix(0, k.Start), time.Unix(0, k.Left), k.Entries, k.Written}, nil
}
