// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"slices"
	"strings"

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

// expectCopies says before the first change what setting labels costs on overlayfs.
// It copies a file of a lower layer up first: whole, unless it is mounted with
// metacopy=on (Documentation/filesystems/overlayfs.rst).
func (r *run) expectCopies(m *mount) {
	info := r.proc.ByID(m.Stat.Mount)
	if info != nil && info.FSType == "overlay" && !r.o.inner.check && !slices.Contains(strings.Split(info.Super, ","), "metacopy=on") {
		r.Note("%s is on overlayfs, which copies a file of a lower layer up whole to set its label", m.Path)
	}
}
