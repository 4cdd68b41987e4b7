// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"github.com/fastlabel/fastlabel/relabel/internal/mounts"
	"github.com/fastlabel/fastlabel/relabel/internal/sys"
	"github.com/fastlabel/fastlabel/relabel/internal/walk"
	"github.com/fastlabel/fastlabel/relabel/internal/watch"
)

// mount is a mount that the run walks, or a file.
type mount struct {
	*mounts.Mount
	activity *watch.Activity
	top      walk.Top
	want     *walk.Want // nil: the label of the run
	topOnly  bool       // what is beneath it is left out

	// By rules: see commit.Disavow, and the entries that were written before it.
	disavowed, first bool
	before           int64
}

// enclose readies m for the walk.
func (r *run) enclose(m *mount) (string, sys.Errno) {
	try := mounts.Try{Clone: r.capabilities.clones, Openat2: r.capabilities.openat2}
	if op, e := m.Enclose(r.bounds, try, m.activity); e != 0 {
		return op, e
	}
	m.Served = m.Served || r.capabilities.served
	m.Stale = m.Stale || r.capabilities.stale
	m.top = walk.Top{FD: m.Top, Outcome: walk.Skipped}
	r.expectCopies(m)
	return "", 0
}
