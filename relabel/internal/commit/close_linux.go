// SPDX-License-Identifier: Apache-2.0

package commit

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/fastlabel/fastlabel/relabel/internal/sys"
)

// passes bounds how often the root's entries are read again. A pass that
// finds something means that a process still creates entries; they inherit the
// root's label since the commit, so that a few passes end it.
const passes = 32

// Close ends the run, whose work on what is beneath the root ended with err: the
// commit if everything went well, else what is true. Without an error, and only
// then, all is done, or was looked at by a dry run. A Revoke beside it has ended by
// then, or does nothing: the caller is about to close the root.
func (c *Root) Close(ctx context.Context, err error) error {
	defer c.end()
	if err == nil {
		err = context.Cause(ctx)
	}
	if err == nil && c.Failed() == nil {
		if c.DryRun {
			c.Labelled(!c.Right())
			return nil
		}
		err = c.commit(ctx)
	}
	if errors.Is(err, ErrOvertaken) {
		c.cede()
		return err
	}
	if failed := c.Failed(); failed != nil {
		if c.Revoke(); err == nil {
			err = failed
		}
	}
	return err
}

func (c *Root) end() {
	c.revoking.Lock()
	defer c.revoking.Unlock()
	c.closed = true
}

// commit writes the root's label behind everything else in the filesystem's order; and looks
// before and after for what was created in the root during the run.
func (c *Root) commit(ctx context.Context) error {
	if c.Unsynced() || c.Sync {
		if err := c.order(); err != nil {
			c.Revoke() // it vouches for what may not be on disk
			return err
		}
	}
	// Asked before the root is written, which sets its ctime too.
	c.At("statx")
	if st, e := sys.Refresh(c.FD, nil); e != 0 || !st.Ctime.Equal(c.ctime) {
		c.moved = true
	}
	wrote := !c.Right()
	if wrote && c.moved { // one who reads the label alone believes it from then on, also if this run is killed
		n, err := c.Reread(ctx)
		if err == nil && n > 0 {
			err = c.order()
		}
		if err != nil || c.Failed() != nil {
			return err
		}
	}
	if ctx.Err() != nil { // as when the disk took longer than the caller had
		return context.Cause(ctx)
	}
	if err := c.Ours(); err != nil {
		return err
	}
	if wrote {
		if e := c.write(c.Want); e != 0 {
			return c.Refused(e)
		}
		c.At("")
	}
	err := c.conclude(ctx, wrote)
	if err != nil && !errors.Is(err, ErrOvertaken) {
		c.Revoke() // what was created by then was not looked for to the end
	}
	return err
}

// conclude is the end of a run whose root has the label, unless something failed, or its
// caller has given it up.
func (c *Root) conclude(ctx context.Context, wrote bool) error {
	if wrote && (c.Sync || c.Order() == Waits) {
		if err := c.pass(syncOne); err != nil {
			return err
		}
	}
	c.Labelled(wrote)
	if err := c.reread(ctx); err != nil || c.Failed() != nil {
		return err
	}
	if err := c.disclaim(ctx); err != nil || !c.Sync || !c.claims {
		return err
	}
	return c.pass(syncOne) // that it has no claim any more
}

// disclaim takes the claim off the root. After a power loss it may be there again: then the
// next run reads everything.
func (c *Root) disclaim(ctx context.Context) error {
	c.revoking.Lock()
	defer c.revoking.Unlock()
	if !c.Right() {
		return cmp.Or(context.Cause(ctx), context.Canceled)
	}
	if err := c.Ours(); err != nil {
		return err
	}
	c.At("fremovexattr")
	defer c.At("")
	if e := removeClaim(sys.Opened, c.FD); e != 0 {
		c.Note("the attribute %s could not be removed: %v", ClaimName, e)
	}
	c.closed = true
	return nil
}

// Revoke seals a root that has the label although something failed.
func (c *Root) Revoke() {
	c.revoking.Lock()
	defer c.revoking.Unlock()
	if c.closed || c.DryRun || c.NoSeal || !c.Right() {
		return
	}
	found, is, _ := c.claimed()
	if c.reseal(found, is); !c.Right() {
		c.Note("the root was sealed: it must not vouch for what failed")
		c.Withheld()
	}
}

// cede is for a root that is not ours any more: it is left to a run that has sealed it,
// if that has found this run's claim, and so waited until this run wrote no more. Any other
// label on it says what this run has made untrue since, and has to go.
func (c *Root) cede() {
	c.revoking.Lock()
	defer c.revoking.Unlock()
	has, err := c.read()
	if err != nil || has.None || has.Long {
		return
	}
	label := has.String()
	c.label.Store(&label)
	k, is, _ := c.claimed()
	theirs := is && (k.seal == label || k.want == "") // by rules it has no seal
	healed := !c.claims && c.Written() > 0
	if (healed || !theirs) && !c.NoSeal {
		c.reseal(k, is)
	}
	c.Withheld()
}

// reseal seals a root whose label vouches for too much.
func (c *Root) reseal(found claim, is bool) {
	if err := c.seal(found, is); err != nil {
		c.Note("the root still has the label, and could not be sealed: %v", err)
	}
}

// reread finds what was created in the root after its entries were read and
// before it had the label, for that inherited the wrong one. It reads the
// entries until a pass finds nothing to write, unless nothing was created,
// renamed or removed in the root since.
func (c *Root) reread(ctx context.Context) error {
	if c.untouched() {
		return nil
	}
	for range passes {
		n, err := c.Reread(ctx)
		if err != nil || n == 0 || c.Failed() != nil {
			return err
		}
		if err := c.order(); err != nil {
			return err
		}
	}
	return fmt.Errorf("%s: entries without the label appeared in each of %d readings", c.Path, passes)
}
