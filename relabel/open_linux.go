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

// begin waits for a share of the process's budget, and opens the root. Whatever else is looked
// up by a path is looked up before, last by ready. end follows, also after an error.
func (r *run) begin(ctx context.Context, path string, ask func() capabilities, ready func() error) error {
	share, err := process.Enter(ctx)
	if err != nil {
		return err
	}
	r.main.Share.Store(share)
	excluded, err := mounts.Exclusions(r.o.Exclude)
	if err != nil {
		return err
	}
	if err := r.openProc(); err != nil {
		return err
	}
	if r.proc.Apart(r.slash) {
		return threadApart(path)
	}
	r.bounds = mounts.Bounds{Refused: r.proc.Refusals(), Excluded: excluded, OneFilesystem: r.o.OneFilesystem}
	r.capabilities = ask()
	if err := ready(); err != nil {
		return err
	}
	return r.openRoot(path)
}

// end releases the lock, and closes what begin has opened, and the root as it was opened for the
// walk.
func (r *run) end() {
	r.held.Release()
	if r.root != nil {
		r.root.Leave()
		r.root.Close()
	}
	if r.proc != nil {
		r.proc.Close()
	}
	r.main.Share.Load().Close() // it may be another by now: see submounts
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
		r.note("%s", note)
	}
	return err
}

// openRoot names the root by an O_PATH descriptor, whatever its kind, and refuses one that is
// not the one asked for, or must not be relabelled.
func (r *run) openRoot(path string) error {
	m, err := r.proc.OpenRoot(path, &r.main.Activity)
	if err != nil {
		return err
	}
	r.root = &mount{Mount: m, activity: &r.main.Activity, top: walk.Top{Outcome: walk.Skipped}}
	if want := r.o.inner.at; want != nil {
		if at, e := mounts.VolumeOf(m.At); e != 0 || at != *want {
			return &fs.PathError{Op: "openat", Path: m.Path, Err: flight.ErrMoved}
		}
	}
	if place, is := r.bounds.Refused[mounts.IDOf(m.Stat)]; is {
		return &fs.PathError{Op: "relabel", Path: m.Path, Err: fmt.Errorf("%w: it is %s, or holds it", ErrRefused, place.Path)}
	}
	if r.bounds.Refused != nil && r.proc.OfDevices(m, r.bounds.Refused) {
		return &fs.PathError{Op: "relabel", Path: m.Path, Err: fmt.Errorf("%w: it lies on devtmpfs, which has the devices of the whole machine", ErrRefused)}
	}
	return r.bounds.Admit(m)
}

// learn reads what is mounted where, and refuses a root that cannot have a label of
// its own.
func (r *run) learn(root *mount) error {
	root.activity.At("read", "/proc/self/mountinfo")
	defer root.activity.At("", "")
	return r.proc.Learn(root.Mount, r.bounds)
}

// lock takes the volume's lock. A file is one call, which nothing seals or commits:
// there is nothing to lock.
func (r *run) lock(ctx context.Context, root *mount) (err error) {
	if r.o.inner.check || root.Stat.Kind != sys.KindDir {
		return nil
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
		if r.trace.Wait != nil {
			r.Call(func() { r.trace.Wait(holder) })
		}
	}
	does := ""
	if r.o.inner.joins {
		does = "relabel to " + r.want
	}
	r.held, err = commit.TakeLock(ctx, root.Stat, root.Path, does, wait)
	r.joined = err == nil && does != "" && r.held.After == does
	if err == nil && r.held.Unlocked != nil {
		r.note("no lock was taken: %v", r.held.Unlocked)
	}
	return err
}
