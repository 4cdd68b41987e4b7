// SPDX-License-Identifier: Apache-2.0

package commit

import (
	"context"
	"io/fs"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/fastlabel/fastlabel/internal/secctx"
	"github.com/fastlabel/fastlabel/relabel/internal/sys"
	"github.com/fastlabel/fastlabel/relabel/internal/xattrio"
)

// Run is what a run hands in. Its functions are called in the goroutine that calls
// the Root.
type Run struct {
	FD    int    // the root, open for reading, in its clone
	Kind  int64  // its filesystem, as sys.FSType says; 0 if that is not known
	Path  string // for messages
	Want  string // the label in canonical form
	Stale bool   // the server is to be asked what the root has

	DryRun bool
	NoSeal bool
	Sync   bool // all is on disk before the label is written, and that before Close returns

	// Order is asked when something is about to be written, and not before.
	Order   func() Order
	At      func(call string) // which call comes next; "" when the last has returned
	Note    func(format string, args ...any)
	Failed  func() error          // what has failed so far: then nothing is committed
	Written func() int64          // so many entries were written so far
	Refused func(sys.Errno) error // words what the label was refused by

	// Labelled is told that the root has the label, or would have it but for DryRun;
	// wrote says that it was written.
	Labelled func(wrote bool)
	// Withheld is told that it has a seal again.
	Withheld func()
	// Reread labels the root's own entries anew, and says how many were wrong.
	Reread func(context.Context) (written int64, err error)
}

// Root is the root's label, on which others act. Everything that ever writes it
// stands in this package:
//
//	Seal    before the first change beneath it: nobody's label
//	Close   after everything else is written, in the filesystem's order
//	Revoke  when a root that is right must not go on vouching
//
// A process killed between any two of these leaves the old label with nothing
// changed beneath, or the seal, or the new label with everything beneath it
// done but for what came to the root since: so the claim stays until that is done too.
type Root struct {
	Run
	found     xattrio.Label
	have      string                 // the label that it has from before; "" for none
	wrong     bool                   // that was another, or vouched for nothing
	left      atomic.Pointer[string] // what this run has left on it
	sealed    bool                   // it has a seal by now
	claims    bool                   // it has this run's claim
	unproved  bool                   // it has the label, and the claim of a run that did not end
	replaced  bool                   // another run's claim: wait until that one notices
	looked    atomic.Int64           // when Due said so last, in nanoseconds
	sure      atomic.Int64           // when the last look began that found the root ours, likewise
	revoking  sync.Mutex             // Revoke may come beside a run that hangs
	times     times                  // of the root, before it was read
	ctime     time.Time              // of the root, before the walk and after the seal
	names     names                  // of the root's entries, when the walk read them
	moved     bool                   // another changed the root since
	committed bool                   // it has the label by now
	closed    bool                   // the run's work on the root has ended
}

// Open reads the root's label.
func Open(r Run) (*Root, error) {
	c := &Root{Run: r, names: names{long: true}}
	c.At("fgetxattr")
	var err error
	if c.found, err = c.read(); err != nil {
		return nil, err
	}
	c.have = c.found.String()
	c.At("statx")
	var e sys.Errno
	c.times, e = c.lookAtTimes()
	c.At("")
	if e != 0 {
		return nil, c.fail("statx", e)
	}
	c.ctime = c.times.ctime
	c.sure.Store(c.times.at.UnixNano()) // before there is a claim to be replaced
	c.looked.Store(c.times.at.UnixNano())
	c.leaves(c.have)
	// Where the root is right, a wrong label beneath it is a stray, and
	// writing the right ones again would touch every file for nothing.
	if c.have == c.Want {
		_, c.unproved = c.claimed()
	}
	c.wrong = !c.Right()
	return c, nil
}

// Found is what the root had when it was opened.
func (c *Root) Found() xattrio.Label { return c.found }

// Right says whether the root has the label, and vouches by it.
func (c *Root) Right() bool { return c.have == c.Want && !c.unproved }

// Resumes says whether the root was found as an interrupted run to the label leaves it.
func (c *Root) Resumes() bool {
	return c.unproved && c.unfinished() || secctx.IsSeal(c.found.String(), c.Want)
}

// Unsynced says whether anything may not be on disk yet that the root is about
// to vouch for, or vouches for already: what this run wrote, or what a run
// before it wrote that was killed before it came to its commit.
func (c *Root) Unsynced() bool { return c.wrong || c.Written() > 0 }

func (c *Root) fail(op string, e sys.Errno) error {
	return &fs.PathError{Op: op, Path: c.Path, Err: e}
}

func (c *Root) read() (xattrio.Label, error) {
	io := xattrio.New("")
	io.Stale = c.Stale
	has, op, e := io.Read(xattrio.Target{FD: c.FD})
	if e != 0 {
		return has, c.fail(op, e)
	}
	return has, nil
}

func (c *Root) write(label string) sys.Errno {
	io := xattrio.New(label)
	_, e := io.Write(xattrio.Target{FD: c.FD})
	return e
}

// Seal takes from a root that has another label its power to vouch for it.
func (c *Root) Seal() error {
	if c.Right() || c.DryRun {
		return nil
	}
	if !c.NoSeal {
		// It may be there already, left by a run that did not end.
		found, is := c.claimed()
		if c.sealed = c.isSealed(found, is); c.sealed {
			c.claims = true
		} else if err := c.writeSeal(found, is); err != nil {
			return err
		}
		st, e := sys.Refresh(c.FD, nil)
		if e != 0 {
			return c.fail("statx", e)
		}
		c.ctime = st.Ctime
	}
	return nil
}

// writeSeal seals a root that has a label, and the claim found if is.
func (c *Root) writeSeal(found claim, is bool) error {
	var last sys.Errno
	err := c.stake(found, is, func(seal string) (bool, error) {
		// Another run may have been committed since the label was read, or may
		// be about to: it sees the claim by now.
		if err := c.Ours(); err != nil || seal == "" {
			return true, err
		}
		c.At("fsetxattr")
		last = c.write(seal)
		switch last {
		case 0:
			c.sealed = true
			c.leaves(seal)
			return true, c.pass(c.Order().one())
		case syscall.EINVAL, syscall.EPERM, syscall.EACCES, syscall.EROFS:
			return false, nil // the policy's no to this seal, or the volume's to all
		}
		return true, c.fail("fsetxattr", last)
	})
	if err == nil && !c.sealed && c.have != "" {
		c.Note("the root could not be sealed (%v): until the end it vouches for %s", last, c.have)
	}
	return err
}

// leaves notes what this run has left on the root.
func (c *Root) leaves(label string) { c.left.Store(&label) }

// order keeps what was written so far, by anyone, before what is written from here on.
func (c *Root) order() error {
	if c.Sync {
		return c.pass(syncAll)
	}
	return c.pass(c.Order().all())
}

func (c *Root) pass(b barrier) error {
	if e := b.on(c.FD, c.At); e != 0 {
		return c.fail(b.op, e)
	}
	return nil
}
