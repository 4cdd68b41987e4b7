// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"

	"github.com/fastlabel/fastlabel/internal/flight"
	"github.com/fastlabel/fastlabel/internal/mounts"
	"github.com/fastlabel/fastlabel/internal/order"
	"github.com/fastlabel/fastlabel/internal/policy"
	"github.com/fastlabel/fastlabel/internal/sys"
	"github.com/fastlabel/fastlabel/internal/walk"
	"github.com/fastlabel/fastlabel/internal/xattrio"
)

// capabilities are those of this kernel; probe finds them.
type capabilities struct {
	kernel  walk.Kernel
	clones  bool // private clones are worth a try
	openat2 bool
	small   bool // small trees are labelled without a clone and without workers

	served bool // for tests: every filesystem counts as one with a server
	stale  bool // for tests: and as NFS, which answers from memory
	always bool // for tests: small trees are labelled so also where Workers is set
}

// probe asks the kernel, once: what it can do does not change.
var probe = sync.OnceValue(func() capabilities {
	return capabilities{kernel: walk.Kernel{Way: xattrio.Fastest(), Sorting: order.Ample}, clones: true, openat2: sys.HasOpenat2(), small: true}
})

// open waits for a share of the process's budget, and opens the root, after all else that is looked
// up by a path. With ask, the policy is asked about the label. close follows in any case.
func (r *relabelling) open(ctx context.Context, ask bool) error {
	byPath := r.byContexts()
	if !byPath {
		if err := r.canonical(); err != nil {
			return err
		}
	}
	share, err := process.Enter(ctx)
	if err != nil {
		return err
	}
	r.run.Share.Store(share)
	excluded, err := mounts.Exclusions(r.o.Exclude, &r.run.Main)
	if err != nil {
		return err
	}
	if err := r.openProc(); err != nil {
		return err
	}
	if r.proc.Apart(r.slash) {
		return threadApart(r.path)
	}
	r.bounds = mounts.Bounds{Refused: r.proc.Refusals(&r.run.Main), Excluded: excluded, OneFilesystem: r.o.OneFilesystem}
	if r.rules != nil {
		r.rules.trustless = r.bounds.Refused
	}
	if byPath {
		r.bounds.Refused, r.bounds.Kernels = nil, true
	}
	r.capabilities = probe()
	if r.inner.can != nil {
		r.capabilities = *r.inner.can
	}
	if ask {
		if err := r.askPolicy(); err != nil {
			return err
		}
	}
	return r.openRoot()
}

func (r *relabelling) byContexts() bool { return r.rules != nil && r.rules.Contexts != nil }

// close closes what open has opened, and the root as it was opened for the walk.
func (r *relabelling) close() {
	if r.root != nil {
		r.root.Leave()
		r.root.Close()
	}
	if r.proc != nil {
		r.proc.Close()
	}
	r.run.Share.Load().Close()
}

// openProc opens /proc, and with it the way to the loaded policy. By file contexts it may be one
// that is mounted nowhere: an image is built in a chroot without.
func (r *relabelling) openProc() (err error) {
	var seen mounts.Seen
	if r.inner.here {
		seen = r.slash
	}
	r.proc, err = mounts.OpenProc(seen)
	if errors.Is(err, mounts.ErrNoProc) && r.byContexts() && sys.OwnProc() == 0 {
		r.proc, err = mounts.OpenProc(seen)
	} else if errors.Is(err, mounts.ErrNoProc) && r.byContexts() {
		err = &fs.PathError{Op: "openat", Path: "/proc", Err: fmt.Errorf("%w, and this process can have none of its own (Linux 6.13, CAP_SYS_ADMIN); from outside: restorecon --root DIR", mounts.ErrNoProc)}
	}
	if err == nil {
		r.proc.NoSELinux = policy.Off()
		r.policy = new(policy.Policy)
	}
	return err
}

// askPolicy replaces the label by the form in which the loaded policy prints it.
func (r *relabelling) askPolicy() error {
	known, note, err := r.policy.Know(r.want)
	r.want = known
	r.account.set(func(report *Report) { report.Label = known })
	if note != "" {
		r.account.note("%s", note)
	}
	return err
}

// openRoot opens the root by O_PATH, and refuses one that is not the one asked for, or must not be
// relabelled.
func (r *relabelling) openRoot() (err error) {
	r.root, err = r.proc.OpenRoot(r.path, r.inner.dir, &r.run.Main)
	if err != nil {
		return err
	}
	if want := r.inner.at; want != nil {
		if at, e := mounts.VolumeOf(r.root.At); e != 0 || at != *want && at.ByAnyMount() != *want {
			return &fs.PathError{Op: "openat", Path: r.path, Err: flight.ErrMoved}
		}
	}
	if place, is := r.bounds.Refused[mounts.IDOf(r.root.Stat)]; is {
		return &fs.PathError{Op: "relabel", Path: r.path, Err: fmt.Errorf("%w: %s is a system directory or a home, or holds one", ErrRefused, place.Path)}
	}
	if r.bounds.Refused != nil && r.proc.OfDevices(r.root, r.bounds.Refused) {
		return &fs.PathError{Op: "relabel", Path: r.path, Err: fmt.Errorf("%w: it lies among the host's devices: its label counts for the whole machine", ErrRefused)}
	}
	return r.bounds.Admit(r.root)
}

// learn reads what is mounted where, and refuses a root that cannot have a label of its own.
func (r *relabelling) learn() error {
	r.run.Main.At("read", "/proc/self/mountinfo")
	defer r.run.Main.At("", "")
	return r.proc.Learn(r.root, r.bounds)
}
