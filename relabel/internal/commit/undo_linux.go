// SPDX-License-Identifier: Apache-2.0

package commit

import (
	"syscall"

	"github.com/fastlabel/fastlabel/internal/secctx"
	"github.com/fastlabel/fastlabel/relabel/internal/sys"
	"github.com/fastlabel/fastlabel/relabel/internal/xattrio"
)

// Undo begins to take back what the run gave: it seals a root that has the run's label,
// proved or not. The seal differs from was too.
func (c *Root) Undo(was string) error {
	if c.DryRun || c.have != c.Want {
		return nil
	}
	c.unmark()
	if c.NoSeal {
		return nil
	}
	return c.writeSeal(was)
}

// Withhold gives the root a seal of was in place of that, which would vouch for too
// much. It says no where was vouches for nothing, being no context, or no seal is taken.
func (c *Root) Withhold(was string) bool {
	found, is := c.claimed()
	if !is { // the seal may be the label that somebody asks for
		if _, e := Disavow(c.FD); e != 0 {
			c.Note("nothing says that the root is sealed: %v", e)
		}
	}
	for _, label := range secctx.Seals(c.Want, was, found.former...) {
		if c.write(label) == 0 {
			c.Note("the root got %s: with %s it would vouch for entries that may not have it", label, was)
			return true
		}
	}
	return false
}

// PutBack gives the root what it had before, exactly.
func (c *Root) PutBack(was string, none bool) (e sys.Errno) {
	c.At("fsetxattr")
	if none {
		e = sys.NewAttr(xattrio.Attribute, nil).Fremovexattr(c.FD)
	} else {
		e = c.write(was)
	}
	if c.At(""); e == syscall.ENODATA {
		e = 0
	}
	return e
}

// Entrust has the root vouch by what it was given back.
func (c *Root) Entrust() { c.disclaim() }
