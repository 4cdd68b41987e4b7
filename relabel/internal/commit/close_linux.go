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
		if err = c.commit(ctx); err == nil && c.Failed() == nil {
			if err = c.conclude(ctx); err == nil {
				return c.sync()
			}
		}
		if err != nil && c.committed && !errors.Is(err, ErrOvertaken) {
			c.Revoke() // what was created by then was not looked for to the end
		}
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

// conclude is the end of a run that has done all, unless its caller has given it up.
func (c *Root) conclude(ctx context.Context) error {
	c.revoking.Lock()
	defer c.revoking.Unlock()
	if c.sealed {
		return cmp.Or(context.Cause(ctx), context.Canceled)
	}
	if err := c.Ours(); err != nil {
		return err
	}
	c.disclaim()
	c.closed = true
	return nil
}

// sync puts on disk that the root has no claim any more.
func (c *Root) sync() error {
	if c.Sync && c.claims {
		return c.pass(syncOne)
	}
	return nil
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
			c.committed = c.Right() // it vouches for what may not be on disk
			return err
		}
	}
	// Asked before the root is written, which sets its ctime too.
	c.At("statx")
	if st, e := sys.Refresh(c.FD, nil); e != 0 || !st.Ctime.Equal(c.ctime) {
		c.moved = true
	}
	wrote := !c.Right() || c.sealed
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
		c.At("fsetxattr")
		if e := c.write(c.Want); e != 0 {
			return c.Refused(e)
		}
		// Whatever fails from here on, the root has to be sealed again.
		c.have, c.unproved, c.sealed, c.committed = c.Want, false, false, true
		c.leaves(c.Want)
		c.At("")
		if c.Sync || c.Order() == Waits {
			if err := c.pass(syncOne); err != nil {
				return err
			}
		}
	}
	c.Labelled(wrote)
	c.committed = true
	return c.reread(ctx)
}

// Revoke seals a root that has the label although something failed.
func (c *Root) Revoke() {
	c.revoking.Lock()
	defer c.revoking.Unlock()
	if c.closed || !c.Right() || c.sealed || c.DryRun {
		return
	}
	if !c.NoSeal && c.reseal() {
		c.Note("the root was sealed: it must not vouch for what failed")
		c.Withheld()
	}
}

// reseal seals a root whose label vouches for too much.
func (c *Root) reseal() bool {
	if err := c.writeSeal(c.claimed()); err != nil {
		c.Note("the root still has the label, and could not be sealed: %v", err)
		return false
	}
	if c.sealed {
		c.have = ""
	}
	return c.sealed
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
