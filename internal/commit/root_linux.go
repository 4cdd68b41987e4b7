// SPDX-License-Identifier: Apache-2.0

package commit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/fastlabel/fastlabel/internal/secctx"
	"github.com/fastlabel/fastlabel/internal/sys"
	"github.com/fastlabel/fastlabel/internal/xattrio"
)

// Run is a relabel, as far as its commit asks it. It is called in the goroutine that calls the Root.
type Run interface {
	At(call string)                        // which call on the root comes next; "" when the last has returned
	Note(format string, args ...any)       // for the caller's report
	Order() Order                          // of the root's filesystem; asked only if something is written
	Written() int64                        // so many entries were written so far
	Failed() error                         // what has failed so far: then nothing is committed
	Refused(sys.Errno) error               // words why the root could not be labelled
	Labelled(c *Root, wrote bool)          // the root has the label or, in a dry run, would have it
	Unlabelled()                           // the root has it no more
	Reread(context.Context) (int64, error) // labels the root's own entries anew; so many were wrong
}

// Root is the volume root, on whose label others act. The exported fields are the run's, and set
// before Begin.
type Root struct {
	Run   Run
	FD    int    // open for reading, in its clone
	Kind  int64  // of its filesystem, by sys.FSType; 0 if that is not known
	Path  string // for messages
	Want  string // the label in canonical form
	Stale bool   // the server is to be asked what the root has

	DryRun bool
	NoSeal bool
	Sync   bool // all is on disk before the label is written, and that before End returns

	Found   string // the label that the root had; "" for none
	Resumes bool   // a run to the label was interrupted

	is     atomic.Pointer[left]
	wrong  bool         // it was not right at first
	looked atomic.Int64 // when Ours looked last, in nanoseconds
	sure   atomic.Int64 // when the last look began that found the root ours, likewise
	times  times        // of the root, before it was read
	ctime  time.Time    // of the root, before the walk and after the seal
	names  names        // of the root's entries, when the walk read them
	moved  bool         // another changed the root since
	mu     sync.Mutex   // one of End and Revoke writes to the root
}

// left records the root's label and claim as this run read or wrote them last.
type left struct {
	state state
	label string
	claim bool // of this run
}

func (c *Root) enter(s state, label string, claim bool) { c.is.Store(&left{s, label, claim}) }

// Right reports whether the root has the label, and is trusted.
func (c *Root) Right() bool { s := c.is.Load().state; return s == right || s == committed }

// Unsynced reports whether anything may not be on disk yet for which the root is trusted, or is
// about to be: what this run wrote, or one that was killed before its commit.
func (c *Root) Unsynced() bool { return c.wrong || c.Run.Written() > 0 }

func (c *Root) fail(op string, e sys.Errno) error {
	return &fs.PathError{Op: op, Path: c.Path, Err: e}
}

// read returns the root's label; "" for none, and for one that is longer than any.
func (c *Root) read() (string, error) {
	io := xattrio.New("")
	io.Stale = c.Stale
	has, op, e := io.Read(xattrio.Target{FD: c.FD})
	if e != 0 {
		return "", c.fail(op, e)
	}
	return has.String(), nil
}

func (c *Root) write(label string, s state) sys.Errno {
	c.Run.At("fsetxattr")
	io := xattrio.New(label)
	_, e := io.Write(xattrio.Target{FD: c.FD})
	if e == 0 {
		c.enter(s, label, c.is.Load().claim)
	}
	return e
}

// Begin looks at the root, and seals one that is not right. It waits for a run whose claim it
// has replaced.
func (c *Root) Begin(ctx context.Context) (err error) {
	c.Run.At("fgetxattr")
	if c.Found, err = c.read(); err != nil {
		return err
	}
	c.Run.At("statx")
	var e sys.Errno
	c.times, e = c.lookAtTimes()
	c.Run.At("")
	if e != 0 {
		return c.fail("statx", e)
	}
	c.ctime = c.times.ctime
	c.sure.Store(c.times.at.UnixNano()) // before there is a claim to be replaced
	c.looked.Store(c.times.at.UnixNano())
	c.enter(found, c.Found, false)
	c.Resumes = secctx.IsSeal(c.Found, c.Want)
	seals := !c.DryRun && !c.NoSeal
	var k claim
	var is bool
	if seals || c.Found == c.Want {
		if k, is, err = c.claimed(); err != nil {
			return err
		}
	}
	// Where the root is right, a wrong label beneath it is a stray: all is read before it is written.
	if c.Found == c.Want {
		if c.Resumes = is && k.want == c.Want; !is {
			c.enter(right, c.Found, false)
		}
	}
	if c.wrong = !c.Right(); !c.wrong || !seals {
		return nil
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	rival := false
	if is && k.want == c.Want && k.seal == c.Found && secctx.IsSeal(c.Found, c.Want) { // the seal of a run that did not end
		c.enter(sealed, c.Found, true)
	} else if rival, err = c.seal(k, is); err != nil {
		return err
	}
	st, e := sys.Refresh(c.FD, nil)
	if e != 0 {
		return c.fail("statx", e)
	}
	if c.ctime = st.Ctime; !rival {
		return nil
	}
	// Both runs may wait for each other: the one that has lost the root by then has written
	// nothing beneath it, and does not touch it.
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(Noticed):
	}
	return c.look()
}

// seal leaves a claim with each seal that may be written, the best first, until the kernel
// takes one. The root has the claim found if is. rival reports whether that is another run's.
func (c *Root) seal(found claim, is bool) (rival bool, err error) {
	has := c.is.Load().label
	k := claim{want: c.Want, former: slices.Clone(found.former)}
	if found.seal != has {
		k.spare(has)
	}
	if rival = found.want != "" && found.want != c.Want; rival {
		k.spare(found.want) // some entries have it
	}
	list := secctx.Seals(has, c.Want, k.former...)
	if len(list) == 0 {
		list = secctx.Seals(has, c.Want)
	}
	if has == "" {
		list = []string{""} // nobody trusts it as it is
	}
	var refused sys.Errno
	for _, k.seal = range list {
		c.Run.At("fsetxattr")
		e := k.write(c.FD, is)
		if e == syscall.EEXIST { // another run came first
			other, _, err := c.claimed()
			if err != nil {
				return false, err
			}
			return c.seal(other, true)
		}
		c.enter(claimed, has, e == 0)
		if k.seal == list[0] && (e == syscall.ENOSPC || e == syscall.EDQUOT) { // its owner may have seen to that
			c.Run.Note("no room for the attribute that marks an unfinished run (%v); if killed, the volume can look done: run it again", e)
		}
		is = true
		// Another run may have been committed since the label was read, or may
		// be about to: it sees the claim by now.
		if err := c.look(); err != nil || k.seal == "" {
			return rival, err
		}
		switch refused = c.write(k.seal, sealed); refused {
		case 0:
			return rival, c.pass(barriers[c.Run.Order()].one)
		case syscall.EINVAL, syscall.EPERM, syscall.EACCES, syscall.EROFS: // the policy's no to this seal, or the volume's to all
		default:
			return rival, c.fail("fsetxattr", refused)
		}
	}
	if st, e := sys.Fstatx(c.FD); e == 0 && (st.Immutable || st.Append) { // nor could it be labelled at the end
		return rival, c.Run.Refused(refused)
	}
	c.Run.Note("the top directory keeps %s (%v): if the run fails or is killed, the volume can look done: run it again", has, refused)
	return rival, nil
}

// order has what was written so far, by anyone, before what is written from here on.
func (c *Root) order() error {
	if c.Sync {
		return c.pass(syncAll)
	}
	return c.pass(barriers[c.Run.Order()].all)
}

func (c *Root) pass(b barrier) error {
	if e := b.on(c.FD, c.Run.At); e != 0 {
		return c.fail(b.op, e)
	}
	return nil
}

// passes bounds how often the root's entries are read again. A pass that finds something means
// that a process still creates entries; since the commit they inherit the root's label.
const passes = 32

// End ends the run, whose work beneath the root ended with err. Without an error, and only then,
// all is done. A Revoke beside it has ended by then, or does nothing.
func (c *Root) End(ctx context.Context, err error) error {
	defer c.end()
	if err == nil {
		err = context.Cause(ctx)
	}
	if err == nil && c.Run.Failed() == nil {
		if c.DryRun {
			c.Run.Labelled(c, c.Found != c.Want) // whatever its claim says: each label was read
			return nil
		}
		err = c.commit(ctx)
	}
	if errors.Is(err, ErrOvertaken) {
		c.overtaken()
		return err
	}
	if failed := c.Run.Failed(); failed != nil {
		if c.Revoke(); err == nil {
			err = failed
		}
	}
	return err
}

func (c *Root) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.enter(ended, "", false)
}

// commit writes the root's label behind everything else in the filesystem's order; and looks
// before and after for what was created in the root during the run.
func (c *Root) commit(ctx context.Context) error {
	if c.Unsynced() || c.Sync {
		if err := c.order(); err != nil {
			c.Revoke() // it is trusted for what may not be on disk
			return err
		}
	}
	// Asked before the root is written, which sets its ctime too.
	c.Run.At("statx")
	if st, e := sys.Refresh(c.FD, nil); e != 0 || !st.Ctime.Equal(c.ctime) {
		c.moved = true
	}
	wrote := !c.Right()
	if wrote && c.moved { // one who reads the label alone believes it from then on, also if this run is killed
		if _, err := c.reread(ctx); err != nil {
			return err
		}
	}
	if ctx.Err() != nil { // as when the disk took longer than the caller had
		return context.Cause(ctx)
	}
	if err := c.look(); err != nil {
		return err
	}
	if wrote {
		if e := c.write(c.Want, committed); e != 0 {
			return c.Run.Refused(e)
		}
		c.Run.At("")
	}
	err := c.conclude(ctx, wrote)
	if err != nil && !errors.Is(err, ErrOvertaken) {
		c.Revoke() // what was created by then was not looked for to the end
	}
	return err
}

// conclude labels what was created in the root before that had the label, and takes the claim
// off it, unless something failed or the caller has cancelled the run.
func (c *Root) conclude(ctx context.Context, wrote bool) error {
	if wrote && (c.Sync || c.Run.Order() == Unordered) {
		if err := c.pass(syncOne); err != nil {
			return err
		}
	}
	c.Run.Labelled(c, wrote)
	for pass, untouched := 1, c.untouched(); !untouched; pass++ {
		n, err := c.reread(ctx)
		switch untouched = n == 0; {
		case err != nil:
			return err
		case pass == passes && !untouched:
			return fmt.Errorf("%s: entries without the label appeared in each of %d readings: stop what creates them, run it again", c.Path, passes)
		}
	}
	claim, err := c.unclaim(ctx)
	if err != nil || !c.Sync || !claim {
		return err
	}
	return c.pass(syncOne) // that it has no claim any more
}

// reread labels the root's own entries anew, before what is written later.
func (c *Root) reread(ctx context.Context) (written int64, err error) {
	written, err = c.Run.Reread(ctx)
	if err = cmp.Or(err, c.Run.Failed()); err == nil && written > 0 {
		err = c.order()
	}
	return written, err
}

// unclaim takes the claim off the root, and reports whether it was this run's. After a power loss
// it may be there again: then the next run reads everything.
func (c *Root) unclaim(ctx context.Context) (claim bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if failed := c.Run.Failed(); failed != nil || !c.Right() { // since it was written, or by a Revoke
		return false, cmp.Or(failed, context.Cause(ctx), context.Canceled)
	}
	if err := c.look(); err != nil {
		return false, err
	}
	c.Run.At("fremovexattr")
	defer c.Run.At("")
	if e := Unclaim(c.FD); e != 0 {
		c.Run.Note("the attribute %s could not be removed: %v", ClaimName, e)
	}
	claim = c.is.Load().claim
	c.enter(ended, c.Want, false)
	return claim, nil
}

// Revoke seals a root that has the label although something failed.
func (c *Root) Revoke() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.DryRun || c.NoSeal || !c.Right() {
		return
	}
	if c.reseal(); c.is.Load().label != c.Want {
		c.Run.Note("not all is done, so the top directory got a temporary label: fix the failures, run it again")
		c.Run.Unlabelled()
	}
}

// overtaken leaves the root to a run that has sealed it, if that has found this run's claim, and
// so waited until this run wrote no more. Any other label on it says what this run has made
// untrue since, and has to go.
func (c *Root) overtaken() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.Run.Unlabelled()
	has, err := c.read()
	if err != nil || has == "" {
		return
	}
	k, is, _ := c.claimed()
	theirs := is && (k.seal == has || k.want == "") // by rules it has no seal
	claim := c.is.Load().claim
	healed := !claim && c.Run.Written() > 0
	c.enter(found, has, claim)
	if (healed || !theirs) && !c.NoSeal {
		c.reseal()
	}
}

// reseal seals a root that is trusted for too much.
func (c *Root) reseal() {
	k, is, _ := c.claimed() // one that cannot be read is found again
	if _, err := c.seal(k, is); err != nil {
		c.Run.Note("the top directory keeps its label (%v): the volume looks done and is not: fix the failures, run it again", err)
	}
}
