// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/fastlabel/fastlabel/internal/secctx"
	"github.com/fastlabel/fastlabel/relabel/internal/policy"
	"github.com/fastlabel/fastlabel/relabel/internal/sys"
	"github.com/fastlabel/fastlabel/relabel/internal/xattrio"
	"github.com/fastlabel/fastlabel/relabel/undo"
)

// record is the root's label, on which others act. Everything that ever writes
// it stands in this file:
//
//	seal    before the first change beneath it: nobody's label
//	commit  after everything else is written, and on disk
//	revoke  when a root that is right must not go on vouching
//
// A process killed between any two of these leaves the old label with nothing
// changed beneath, or the seal, or the new label with everything beneath it
// done.
type record struct {
	*run
	root      *mount
	fd        int // the root, open, in its clone
	attr      *sys.Attr
	have      string                 // what it had at the start; "" for none
	former    undo.Former            // the same, exactly
	left      atomic.Pointer[string] // what this run has left on it
	sealed    bool                   // it has a seal by now
	claims    bool                   // and the run's claim
	borrowed  bool                   // it has the label as the seal of another run
	replaced  bool                   // another run is to notice
	revoking  sync.Mutex             // Tree may revoke beside a run that hangs
	mtime     time.Time              // of the root, before it was read
	asked     time.Time              // when that was
	ctime     time.Time              // of the root, after the seal
	moved     bool                   // its ctime, before the commit
	committed bool                   // it has the label by now
	began     time.Time              // the run, before anything was read; by the clock of files
	earlier   mark                   // of the run before, if it is relied on
}

// passes bounds how often the root's entries are read again. A pass that
// finds something means that somebody still creates entries; they inherit the
// root's label since the commit, so that a few passes end it.
const passes = 32

// settled is how old a modification time must be for a later one to differ
// from it for sure: the coarsest clock of a filesystem in use ticks every two
// seconds.
const settled = 2 * time.Second

func (r *run) openRecord(root *mount) (*record, error) {
	c := &record{run: r, root: root, fd: int(root.top.fd), began: sys.CoarseTime()}
	c.attr = sys.NewAttr(xattrio.Attribute, []byte(r.want))
	if !r.o.DryRun {
		c.at("flock")
		sys.TryShare(c.fd) // where it cannot be had no other run waits for this one
	}
	c.at("fgetxattr")
	n, e := c.attr.Fgetxattr(c.fd)
	switch e {
	case 0:
		c.have = secctx.Trim(c.attr.Value(n))
		c.former.Label = string(c.attr.Value(n))
	case errNoLabel:
		c.former.None = true
	case errLongLabel:
		if c.o.Recorder != nil {
			return nil, pathError("fgetxattr", root.Path, e)
		}
	default:
		return nil, r.fatal(pathError("fgetxattr", root.Path, e))
	}
	c.at("statx")
	st, e := sys.Fstatx(c.fd)
	c.at("")
	if e != 0 {
		return nil, pathError("statx", root.Path, e)
	}
	c.mtime, c.asked = st.Mtime, time.Now()
	c.leaves(c.have)
	if secctx.IsSeal(c.have, r.want) {
		r.tell(func(report *Report) { report.Interrupted = r.want })
	}
	// Where the root is right, a wrong label beneath it is a stray, and
	// writing the right ones again would touch every file for nothing.
	c.borrowed = c.have == c.want && c.isSeal()
	r.commits = !c.right()
	r.guesses = r.commits && !r.o.Exact && !r.o.DryRun
	return c, nil
}

// unsynced says whether anything may not be on disk yet that the root is about
// to vouch for, or vouches for already: what this run wrote, or what a run
// before it wrote that was killed before it came to its own syncfs.
func (r *run) unsynced() bool { return r.commits || r.counted(written) > 0 }

func (c *record) right() bool { return c.have == c.want && !c.borrowed }

// seal takes from a root that bears another label its power to vouch for it.
func (c *record) seal() error {
	if err := c.beginRecord(c.root, c.former); err != nil {
		return err
	}
	if !c.right() && !c.o.DryRun {
		c.unmark()
	}
	if !c.right() && !c.o.DryRun && !c.o.NoSeal {
		// It may be there already, left by a run that did not end.
		if c.sealed = c.isSealed(); c.sealed {
			c.claims = true
		} else if err := c.writeSeal(); err != nil {
			return err
		}
		c.replaced = c.shares() || c.replaced
	}
	st, e := sys.Fstatx(c.fd)
	if e != 0 {
		return pathError("statx", c.root.Path, e)
	}
	c.ctime = st.Ctime
	return nil
}

// writeSeal seals a root that has a label, by one that is none of former either.
func (c *record) writeSeal(former ...string) error {
	var last sys.Errno
	err := c.stake(former, func(seal string) (bool, error) {
		// Another run may have been committed since the label was read, or may
		// be about to: it sees the claim by now.
		if err := c.ours(); err != nil || seal == "" {
			return true, err
		}
		c.at("fsetxattr")
		last = sys.NewAttr(xattrio.Attribute, []byte(seal)).Fsetxattr(c.fd)
		switch last {
		case 0:
			c.sealed = true
			c.leaves(seal)
			return true, c.sync("fsync", sys.Fsync)
		case syscall.EINVAL, syscall.EPERM, syscall.EACCES, syscall.EROFS:
			return false, nil // the policy's no to this seal, or the volume's to all
		}
		return true, pathError("fsetxattr", c.root.Path, last)
	})
	if err == nil && !c.sealed && c.have != "" {
		c.note("the root could not be sealed (%v): until the end it vouches for %s", last, c.have)
	}
	return err
}

// leaves notes what this run has left on the root.
func (c *record) leaves(label string) { c.left.Store(&label) }

// sync makes the root, or its filesystem, durable; with NoSync nothing is.
func (c *record) sync(op string, call func(int) sys.Errno) error {
	if c.o.NoSync {
		return nil
	}
	c.at(op)
	defer c.at("")
	if e := call(c.fd); e != 0 {
		return pathError(op, c.root.Path, e)
	}
	return nil
}

// at says which call is made of the root next.
func (c *record) at(call string) { c.root.activity.At(call, c.root.Path) }

// close ends the run: the commit if everything went well, else what is true.
func (c *record) close(ctx context.Context, err error) error {
	if err == nil {
		err = context.Cause(ctx)
	}
	if err == nil && len(c.first) == 0 && c.counted(failure) == 0 {
		if c.o.DryRun {
			return c.judgeDry()
		}
		err = c.commit(ctx)
		err = cmp.Or(err, c.broken()) // a callback that panics ends the run sealed
		if err == nil && len(c.first) == 0 {
			err = c.ours()
		}
		if err == nil && len(c.first) == 0 {
			return c.conclude(ctx)
		}
		if err != nil && c.committed && !errors.Is(err, ErrOvertaken) {
			c.revoke() // what was created meanwhile was not looked for to the end
		}
	}
	if errors.Is(err, ErrOvertaken) {
		c.cede()
		return err
	}
	if len(c.first) > 0 || c.counted(failure) > 0 || c.broken() != nil {
		if c.revoke(); err == nil {
			err = c.failures()
		}
	}
	return err
}

// conclude is the end of a run that has done all, unless Tree has given it up.
func (c *record) conclude(ctx context.Context) error {
	c.revoking.Lock()
	defer c.revoking.Unlock()
	if c.sealed {
		return context.Cause(ctx)
	}
	c.disclaim()
	c.leaveMark()
	c.tell(func(report *Report) { report.Complete = true })
	return nil
}

// judgeDry gives the root's own label its place in the counts of a dry run.
func (c *record) judgeDry() error {
	o := written
	if c.right() {
		o = right
	} else if c.o.OnChange != nil {
		c.change(c.root.top, xattrio.Target{}, c.have)
	}
	c.settle(o)
	c.tell(func(report *Report) { report.Complete = c.total.of[written] == 0 })
	return nil
}

// settle counts the root, which until now counted as left alone.
func (c *record) settle(o outcome) {
	c.recount(skipped, o)
	c.root.top.outcome = o
}

// commit puts everything on disk, then the root's label, then that; and looks
// once more for what was created in the root meanwhile.
func (c *record) commit(ctx context.Context) error {
	if c.unsynced() {
		if err := c.sync("syncfs", sys.Syncfs); err != nil {
			c.committed = c.right() // it vouches for what may not be on disk
			return err
		}
	}
	// A modification time can be set back, and tar and rsync do; that moves
	// this one. Asked before the root is written, which moves it too.
	c.at("statx")
	if st, e := sys.Fstatx(c.fd); e != 0 || !st.Ctime.Equal(c.ctime) {
		c.moved = true
	}
	if ctx.Err() != nil { // as when the disk took longer than the caller had
		return context.Cause(ctx)
	}
	if err := c.ours(); err != nil {
		return err
	}
	if c.right() && !c.sealed {
		c.settle(right)
	} else {
		from := c.have
		c.at("fsetxattr")
		if e := c.attr.Fsetxattr(c.fd); e != 0 {
			return c.uncommitted(e)
		}
		// Whatever fails from here on, the root has to be sealed again.
		c.have, c.borrowed, c.sealed, c.committed = c.want, false, false, true
		c.leaves(c.want)
		if err := c.sync("fsync", sys.Fsync); err != nil {
			return err
		}
		c.settle(written)
		c.at("")
		c.change(c.root.top, xattrio.Target{}, from)
	}
	c.committed = true
	revoke := c.revoke
	c.second.Store(&revoke)
	return c.reread(ctx)
}

// uncommitted is the error of a root whose label was refused by e.
func (c *record) uncommitted(e sys.Errno) error {
	err := error(e)
	if n, unread := c.attr.Fgetxattr(c.fd); unread == 0 && c.selinux { // it may bear the seal
		err = c.policy.Denial(secctx.Trim(c.attr.Value(n)), c.want, sys.KindDir, e)
	}
	if st, unread := sys.Fstatx(c.fd); unread == 0 {
		if why := policy.Locked(st, e); why != nil {
			err = why
		}
	}
	return c.fatal(&fs.PathError{Op: "fsetxattr", Path: c.root.Path, Err: err})
}

// revoke seals a root that bears the label although something failed.
func (c *record) revoke() {
	c.revoking.Lock()
	defer c.revoking.Unlock()
	if !c.right() || c.sealed || c.o.DryRun {
		return
	}
	c.unmark()
	if c.o.NoSeal {
		return
	}
	if c.reseal() {
		c.note("the root was sealed: it must not vouch for what failed")
		if c.root.top.outcome != skipped && !c.root.top.spoiled {
			c.recount(c.root.top.outcome, skipped)
		}
	}
}

// reseal seals a root whose label vouches for too much.
func (c *record) reseal() bool {
	if err := c.writeSeal(); err != nil {
		c.note("the root still bears the label, and could not be sealed: %v", err)
		return false
	}
	if c.sealed {
		c.have = ""
	}
	return c.sealed
}

// reread finds what was created in the root after its entries were read and
// before it bore the label, for that inherited the wrong one. It reads the
// entries until a pass finds nothing to write, unless the root's modification
// time tells that nothing was created, renamed or removed in it since.
func (c *record) reread(ctx context.Context) error {
	for range passes {
		c.at("statx")
		st, e := sys.Fstatx(c.fd)
		if e == 0 && !c.moved && st.Mtime.Equal(c.mtime) && c.mtime.Before(c.asked.Add(-settled)) {
			return nil
		}
		c.at("openat")
		fd, e := openReading(func(flags int) (int, sys.Errno) {
			return sys.Openat(c.fd, sys.Cname("."), flags, 0)
		})
		c.at("")
		if e != 0 {
			return pathError("openat", c.root.Path, e)
		}
		top := &dir{mount: c.root, fd: int32(fd), outcome: c.root.top.outcome, rereading: true}
		before := c.counted(written)
		c.guesses = false
		err := c.walk(ctx, c.main, c.root, []item{{dir: top}})
		sys.Close(fd)
		c.root.top.spoiled = top.spoiled
		if err != nil || c.counted(failure) > 0 {
			return err
		}
		if c.counted(written) == before {
			return nil
		}
		if err := c.sync("syncfs", sys.Syncfs); err != nil {
			return err
		}
	}
	return fmt.Errorf("%s: entries without the label appeared in each of %d readings", c.root.Path, passes)
}
