// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"context"
	"fmt"
	"io/fs"
	"sync"

	"github.com/fastlabel/fastlabel/internal/secctx"
	"github.com/fastlabel/fastlabel/relabel/internal/commit"
	"github.com/fastlabel/fastlabel/relabel/internal/flight"
	"github.com/fastlabel/fastlabel/relabel/internal/mounts"
	"github.com/fastlabel/fastlabel/relabel/internal/order"
	"github.com/fastlabel/fastlabel/relabel/internal/policy"
	"github.com/fastlabel/fastlabel/relabel/internal/sys"
	"github.com/fastlabel/fastlabel/relabel/internal/walk"
	"github.com/fastlabel/fastlabel/relabel/internal/xattrio"
)

// capabilities is what this kernel lets us do, found out once for a run.
type capabilities struct {
	kernel  walk.Kernel
	clones  bool // private clones are worth a try
	openat2 bool
	small   bool // small trees are labelled without a clone and without workers

	served bool // for tests: every filesystem counts as one with a server
	stale  bool // for tests: and as NFS, of which labels are told from memory
	always bool // for tests: small trees are labelled so also where Workers is set
}

// probe asks the kernel, once: what it can do does not change. A seccomp profile that a
// process takes on later makes such a call fail, which is reported.
var probe = sync.OnceValue(func() capabilities {
	return capabilities{kernel: walk.Kernel{Way: xattrio.Fastest(), Sorting: order.Ample}, clones: true, openat2: sys.HasOpenat2(), small: true}
})

// opened opens the root at path, calls then with it, and closes it, within a share of the
// process's budget. ready, if not nil, is called just before the root is opened.
func (r *run) opened(ctx context.Context, path string, ask func() capabilities, ready func() error, then func(ctx context.Context, root *mount) error) error {
	share, err := process.Enter(ctx)
	if err != nil {
		return err
	}
	defer func() { r.main.Share.Load().Close() }() // it may be another by then: see submounts
	r.main.Share.Store(share)
	if err := r.prepare(); err != nil {
		return err
	}
	defer r.proc.Close()
	if r.proc.Apart(r.slash) {
		return threadApart(path)
	}
	r.capabilities = ask()
	if ready != nil {
		if err := ready(); err != nil {
			return err
		}
	}
	root, err := r.openRoot(path)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := r.bounds.Admit(root.Mount); err != nil {
		return err
	}
	return then(ctx, root)
}

// prepare asks by path what is needed for each root. Whatever is looked up by a path
// is looked up before the root is opened.
func (r *run) prepare() error {
	excluded, err := mounts.Exclusions(r.o.Exclude)
	if err != nil {
		return err
	}
	if err := r.openProc(); err != nil {
		return err
	}
	r.bounds = mounts.Bounds{Refused: r.proc.Refusals(), Excluded: excluded, OneFilesystem: r.o.OneFilesystem}
	return nil
}

// openProc opens /proc, and with it the way to the loaded policy.
func (r *run) openProc() (err error) {
	if r.proc, err = mounts.OpenProc(); err == nil {
		r.proc.NoSELinux = policy.Off()
		r.policy = new(policy.Policy)
	}
	return err
}

// wanted is the label that a caller asks for.
func (r *run) wanted(label string) (err error) {
	if r.want, err = secctx.Canonical(label); err == nil {
		r.tell(func(report *Report) { report.Label = r.want })
	}
	return err
}

// askPolicy replaces the label by the form in which the loaded policy prints it.
func (r *run) askPolicy() error {
	known, note, err := r.policy.Know(r.want)
	r.want = known
	r.tell(func(report *Report) { report.Label = r.want })
	if note != "" {
		r.Note("%s", note)
	}
	return err
}

// openRoot names the root by an O_PATH descriptor, whatever its kind, and
// refuses those that must not be relabelled.
func (r *run) openRoot(path string) (*mount, error) {
	m, err := r.proc.OpenRoot(path, &r.main.Activity)
	if err != nil {
		return nil, err
	}
	if want := r.o.inner.at; want != nil {
		if at, e := mounts.VolumeOf(m.At); e != 0 || at != *want {
			m.Close()
			return nil, &fs.PathError{Op: "openat", Path: path, Err: flight.ErrMoved}
		}
	}
	if place, is := r.bounds.Refused[mounts.IDOf(m.Stat)]; is {
		m.Close()
		return nil, &fs.PathError{Op: "relabel", Path: path, Err: fmt.Errorf("%w: it is %s, or holds it", ErrRefused, place.Path)}
	}
	return &mount{Mount: m, activity: &r.main.Activity, top: walk.Top{Outcome: walk.Skipped}}, nil
}

// learn reads what is mounted where, and refuses a root that cannot have a label of
// its own.
func (r *run) learn(root *mount) error {
	root.activity.At("read", "/proc/self/mountinfo")
	defer root.activity.At("", "")
	return r.proc.Learn(root.Mount, r.bounds)
}

// locked calls then while it holds the volume's lock.
func (r *run) locked(ctx context.Context, root *mount, then func(ctx context.Context, root *mount) error) error {
	held, err := r.lockRoot(ctx, root)
	if err != nil {
		return err
	}
	defer held.Release()
	return then(ctx, root)
}

// lockRoot takes the volume's lock. A file is one call, which nothing seals or commits:
// there is nothing to lock.
func (r *run) lockRoot(ctx context.Context, root *mount) (*commit.Lock, error) {
	if r.o.inner.check || root.Stat.Kind != sys.KindDir {
		return nil, nil
	}
	share := r.main.Share.Load()
	defer func() {
		share.Waits(false)
		r.holder.Store(nil)
	}()
	if r.o.inner.patience > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeoutCause(ctx, r.o.inner.patience, &fs.PathError{Op: "relabel", Path: root.Path, Err: ErrLocked})
		defer stop()
	}
	wait := func(holder string) {
		share.Waits(true) // so that other volumes do not wait for who has the lock
		r.holder.Store(&holder)
		if r.Told.Wait != nil {
			r.Call(func() { r.Told.Wait(holder) })
		}
	}
	does := ""
	if r.o.inner.joins {
		does = "relabel to " + r.want
	}
	lock, err := commit.TakeLock(ctx, root.Stat, root.Path, does, wait)
	r.joined = err == nil && does != "" && lock.After == does
	if err == nil && lock.Unlocked != nil {
		r.Note("no lock was taken: %v", lock.Unlocked)
	}
	return lock, err
}
