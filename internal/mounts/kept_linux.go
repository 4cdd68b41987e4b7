// SPDX-License-Identifier: Apache-2.0

package mounts

import (
	"sync"

	"github.com/fastlabel/fastlabel/internal/mountinfo"
	"github.com/fastlabel/fastlabel/internal/sys"
)

// What a process keeps between runs: the descriptors of /proc, the table of mounts and
// the refused places. Each run asks first whether they still hold, by two calls:
//
//   - poll(2) of /proc/self/mountinfo, which the kernel marks at each mount, unmount and
//     move in this mount namespace, but not at a rename: the places are looked at once a
//     second all the same, and of the table only ids are used (needsNoTable).
//   - statx(2) of /, which is another one after chroot(2). Nothing is kept then. (A process
//     with several threads cannot enter another mount namespace as a whole.)
//
// kept.mu is not held during a call that can wait for a server: the places have their own
// lock, as a home may lie on one. What is open is closed when neither a run nor the next one
// needs it.

type kept struct {
	places refusals

	mu     sync.Mutex        // guards the rest
	now    *opened           // nil before the first run
	events uint64            // how often the mounts were found changed
	table  []mountinfo.Mount // read since the last change, or nil
}

// opened are the descriptors of one /proc.
type opened struct {
	root    Seen // /
	at      Seen // the path /proc/self/fd
	self    int  // /proc/self
	fds     int  // /proc/self/fd
	changes int  // /proc/self/mountinfo, for poll
	users   int  // runs; guarded by kept.mu
}

var process kept

// enter returns the descriptors for a run, and the number of the last change of the mounts.
func (k *kept) enter(root Seen) (*opened, uint64, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	o := k.now
	changed := o != nil && k.change(sys.MountsChanged(o.changes)) // first: what changes from here on is noticed by the next run
	if changed || root == (Seen{}) {
		root = SeenAt("/")
	}
	if o == nil || root != o.root || changed && SeenAt("/proc/self/fd") != o.at {
		var err error
		k.now, err = openProc(root)
		k.change(true)
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

func (k *kept) leave(o *opened) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if o.users--; o.users == 0 && o != k.now {
		o.close()
	}
}

// change counts a change of the mounts, if there was one. The caller holds k.mu.
func (k *kept) change(is bool) bool {
	if is {
		k.events++
		k.table = nil
	}
	return is
}

// look returns the number of the last change of the mounts, and the table of mounts if it was
// read since.
func (k *kept) look(o *opened) (event uint64, table []mountinfo.Mount) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.change(sys.MountsChanged(o.changes))
	return k.events, k.table
}

// store stores a table that was read after the change with the number at.
func (k *kept) store(table []mountinfo.Mount, at uint64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if at == k.events {
		k.table = table
	}
}

func (o *opened) close() {
	for _, fd := range [...]int{o.self, o.fds, o.changes} {
		if fd >= 0 {
			sys.Close(fd)
		}
	}
}
