// SPDX-License-Identifier: Apache-2.0

package mounts

import (
	"sync"
	"time"

	"github.com/fastlabel/fastlabel/internal/mountinfo"
	"github.com/fastlabel/fastlabel/relabel/internal/sys"
)

// What a process keeps between runs: the descriptors of /proc, the table of mounts and
// the refused places. Each run asks first whether they still hold, by two calls:
//
//   - poll(2) of /proc/self/mountinfo, which the kernel marks at each mount, unmount and
//     move in this mount namespace. Then the way to /proc is compared with what is open,
//     the table is dropped, and the places are looked at.
//   - statx(2) of /, which is another one after chroot(2). Nothing is kept then. (A process
//     with several threads cannot enter another mount namespace as a whole.)
//
// A rename marks nothing. It changes no descriptor. The places are looked at once a second
// all the same, and of the table only ids are used: see suits.
//
// kept.mu is not held during a call that can wait for a server: the places have their own
// lock, as a home may lie on one. What is open is closed when neither a run nor the next
// one needs it. The descriptors keep /proc, and the root directory, from being unmounted
// by a process that changes its root: its next run closes them.

// kept is what the runs of a process share.
type kept struct {
	places refusals

	mu     sync.Mutex // guards the rest
	now    *opened    // nil before the first run
	events uint64     // how often the mounts were found changed
}

// opened are the descriptors of one /proc.
type opened struct {
	root    seen // /
	at      seen // the path /proc/self/fd
	self    int  // /proc/self
	fds     int  // /proc/self/fd
	changes int  // /proc/self/mountinfo, for poll; -1: nothing tells of changes

	once  sync.Once
	infos int // /proc/self/fdinfo, once it is asked for

	users int               // runs; guarded by kept.mu, as what follows
	table []mountinfo.Mount // nil: none is kept
	read  uint64            // kept.events when the table was read
}

// process is what this process keeps.
var process = kept{places: refusals{look: sys.Statx}}

// enter gives a run what is open, and the number of the last change of the mounts.
func (k *kept) enter() (*opened, uint64, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	o := k.now
	changed := k.changed(o) // first: what changes from here on is noticed by the next run
	if root := seenAt("/"); o == nil || root != o.root || changed && seenAt("/proc/self/fd") != o.at {
		var err error
		k.now, err = openProc(root)
		k.events++
		if o != nil && o.users == 0 {
			o.close()
		}
		if err != nil {
			return nil, 0, err
		}
	}
	k.now.users++
	return k.now, k.events, nil
}

// leave is the end of a run that entered.
func (k *kept) leave(o *opened) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if o.users--; o.users == 0 && o != k.now {
		o.close()
	}
}

// changed counts a change of the mounts since the last call. The caller holds k.mu.
func (k *kept) changed(o *opened) bool {
	if o != nil && o.changes >= 0 && !sys.MountsChanged(o.changes) {
		return false
	}
	k.events++
	return true
}

// event is the number of the last change of the mounts.
func (k *kept) event(o *opened) uint64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.changed(o)
	return k.events
}

// tableOf is the table of mounts as it was read last, nil if the mounts have changed.
func (k *kept) tableOf(o *opened) []mountinfo.Mount {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.changed(o)
	if o.read != k.events {
		o.table = nil
	}
	return o.table
}

// tableMost bounds the text of a table that is kept: some 7,000 mounts. Parsed, it takes
// twice as much again.
const tableMost = 1 << 20

// keep keeps a table that was read after the change with the number at.
func (k *kept) keep(o *opened, table []mountinfo.Mount, size int, at uint64) {
	if size > tableMost || o.changes < 0 {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	o.table, o.read = table, at
}

func (o *opened) close() {
	for _, fd := range [...]int{o.self, o.infos, o.fds, o.changes} {
		if fd >= 0 {
			sys.Close(fd)
		}
	}
}

// seen is what was at a path. Of what is no directory the change time tells whether its
// content is the same.
type seen struct {
	id    ID
	mount uint64
	ctime time.Time
	errno sys.Errno
}

func seenOf(st sys.Stat, e sys.Errno) seen {
	s := seen{id: IDOf(st), mount: st.Mount, errno: e}
	if st.Kind != sys.KindDir {
		s.ctime = st.Ctime
	}
	return s
}

func seenAt(path string) seen { return seenOf(sys.Statx(sys.AtFdcwd, sys.Cname(path))) }
