// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"time"

	"github.com/fastlabel/fastlabel/relabel/internal/mounts"
	"github.com/fastlabel/fastlabel/relabel/internal/sys"
	"github.com/fastlabel/fastlabel/relabel/internal/watch"
	"github.com/fastlabel/fastlabel/relabel/internal/xattrio"
)

const readOnlySubvolume = "a read-only subvolume"

// mount is a mount as the walk sees it.
type mount struct {
	*mounts.Mount
	activity *watch.Activity
	top      *dir
	sorter   *sorter
	since    time.Time // of the mark relied on: see since_linux.go
}

// enclose readies m for the walk.
func (r *run) enclose(m *mount) (string, sys.Errno) {
	try := mounts.Try{Clone: r.capabilities.clones, Openat2: r.capabilities.openat2}
	if op, e := m.Enclose(r.bounds, try, m.activity); e != 0 {
		return op, e
	}
	m.Served = m.Served || r.capabilities.served
	m.top = &dir{mount: m, fd: int32(m.Top), outcome: skipped, shared: true}
	m.sorter = &sorter{}
	r.expectCopies(m)
	return "", 0
}

// way is how the entries of m are labelled: only a clone keeps a mount from
// being slipped over a name, so elsewhere each entry is pinned first. So it is
// where links are counted: what was counted must be what is labelled.
func (r *run) way(m *mount) xattrio.Way {
	if m.Confined == mounts.Clone && r.o.HardLinks == LinksLabel {
		return r.capabilities.way
	}
	return xattrio.ByDescriptor
}
