// SPDX-License-Identifier: Apache-2.0

package commit

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"slices"
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
	Found   string // the label that it had when it was opened; "" for none
	Resumes bool   // it was as an interrupted run to the label leaves it

	label    atomic.Pointer[string] // what it has, as this run read or wrote it last
	unproved bool                   // it has the label, and the claim of a run that did not end
	wrong    bool                   // it had another label at first, or vouched for nothing
	claims   bool                   // it has this run's claim
	replaced bool                   // another run's claim: wait until that one notices
	looked   atomic.Int64           // when Due said so last, in nanoseconds
	sure     atomic.Int64           // when the last look began that found the root ours, likewise
	times    times                  // of the root, before it was read
	ctime    time.Time              // of the root, before the walk and after the seal
	names    names                  // of the root's entries, when the walk read them
	moved    bool                   // another changed the root since
	revoking sync.Mutex             // Revoke may come beside a run that hangs
	closed   bool                   // the run's work on the root has ended
}

// Open reads the root's label.
func Open(r Run) (*Root, error) {
	c := &Root{Run: r}
	c.At("fgetxattr")
	has, err := c.read()
	if err != nil {
		return nil, err
	}
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
	c.Found = has.String()
	c.label.Store(&c.Found)
	c.Resumes = secctx.IsSeal(c.Found, c.Want)
	// Where the root is right, a wrong label beneath it is a stray, and
	// writing the right ones again would touch every file for nothing.
	if c.Found == c.Want {
		var k claim
		if k, c.unproved, err = c.claimed(); err != nil {
			return nil, err
		}
		c.Resumes = c.unproved && k.want == c.Want
	}
	c.wrong = !c.Right()
	return c, nil
}

// Right says whether the root has the label, and vouches by it.
func (c *Root) Right() bool { return *c.label.Load() == c.Want && !c.unproved }

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
	c.At("fsetxattr")
	io := xattrio.New(label)
	_, e := io.Write(xattrio.Target{FD: c.FD})
	if e == 0 {
		c.label.Store(&label)
		c.unproved = false
	}
	return e
}

// Seal takes from a root that has another label its power to vouch for it. It waits for a run
// whose claim it has replaced.
func (c *Root) Seal(ctx context.Context) error {
	if c.Right() || c.DryRun || c.NoSeal {
		return nil
	}
	found, is, err := c.claimed()
	if err != nil {
		return err
	}
	// A run that did not end may have left this seal.
	c.claims = is && found.want == c.Want && found.seal == c.Found && c.Found != ""
	if !c.claims {
		if err := c.seal(found, is); err != nil {
			return err
		}
	}
	st, e := sys.Refresh(c.FD, nil)
	if e != 0 {
		return c.fail("statx", e)
	}
	c.ctime = st.Ctime
	return c.giveWay(ctx)
}

// seal leaves a claim with each seal that may be written, the best first, until the kernel
// takes one. The root has the claim found if is.
func (c *Root) seal(found claim, is bool) error {
	has := *c.label.Load()
	k := claim{want: c.Want, former: slices.Clone(found.former)}
	if found.seal != has {
		k.spare(has)
	}
	if found.want != c.Want {
		k.spare(found.want) // some entries have it
	}
	list := secctx.Seals(has, c.Want, k.former...)
	if len(list) == 0 {
		list = secctx.Seals(has, c.Want)
	}
	if has == "" {
		list = []string{""} // it vouches for nothing as it is
	}
	c.replaced = found.want != "" && found.want != c.Want
	var refused sys.Errno
	for _, k.seal = range list {
		c.At("fsetxattr")
		e := syscall.EEXIST
		if !is {
			if e = sys.Createxattr(c.FD, ClaimName, []byte(k.String())); e == syscall.EEXIST {
				if other, is, err := c.claimed(); err != nil {
					return err
				} else if is { // another run came first
					return c.seal(other, is)
				}
			}
		}
		if e == syscall.EEXIST { // it is the claim that was found, or none
			e = k.write(c.FD)
		}
		c.claims = e == 0
		if !is && (e == syscall.ENOSPC || e == syscall.EDQUOT) { // its owner may have seen to that
			c.Note("the root has no room for a claim (%v): if this run is killed, its seal may be taken for a label", e)
		}
		is = true
		// Another run may have been committed since the label was read, or may
		// be about to: it sees the claim by now.
		if err := c.Ours(); err != nil || k.seal == "" {
			return err
		}
		switch refused = c.write(k.seal); refused {
		case 0:
			return c.pass(barriers[c.Order()].one)
		case syscall.EINVAL, syscall.EPERM, syscall.EACCES, syscall.EROFS: // the policy's no to this seal, or the volume's to all
		default:
			return c.fail("fsetxattr", refused)
		}
	}
	if st, e := sys.Fstatx(c.FD); e == 0 && (st.Immutable || st.Append) { // nor could it be labelled at the end
		return c.Refused(refused)
	}
	c.Note("the root could not be sealed (%v): until the end it vouches for %s", refused, has)
	return nil
}

// order keeps what was written so far, by anyone, before what is written from here on.
func (c *Root) order() error {
	if c.Sync {
		return c.pass(syncAll)
	}
	return c.pass(barriers[c.Order()].all)
}

func (c *Root) pass(b barrier) error {
	if e := b.on(c.FD, c.At); e != 0 {
		return c.fail(b.op, e)
	}
	return nil
}

// Of two runs that share no lock, as from pods with a /run of their own, one finds the other's
// claim. It puts its own in its place and waits until the other, if it is still at work, has
// noticed: each run looks at its root before the commit, after the second reading, and four
// times a second in between; where such a look is late, it writes nothing until that has ended.
//
//	A: creates its claim, seals ....... looks: not its own, stops
//	B:        finds it, puts its own, seals ....... walks, commits
//
// A run that finds the root right leaves no claim there, for all may be right. But it
// writes what it finds wrong, and that is what a rival has just written. When it notices
// that the root is not its own any more, and it has written anything, it seals the root
// again with its claim, so that the rival notices in turn. That comes at most a lease later
// than the last write: a rival that was committed in that time has said that it is done,
// and its root is sealed. A lock on the root would show the two to each other, but it is
// the lock of the application that the volume belongs to.
const (
	// Every is how often a run asks if its root is still its own, at least.
	Every = 250 * time.Millisecond
	// Noticed is how long a run waits for another whose claim it has replaced.
	Noticed = 4 * Every
	// lease is how long a run writes after a look at its root began: less than Noticed, for
	// the call under way has to end too.
	lease = 3 * Every
)

// Due says, four times a second and to one who asks, that it is time for Ours.
func (c *Root) Due() bool {
	last, now := c.looked.Load(), time.Now().UnixNano()
	since := time.Duration(now - last) // less than nothing where the clock was put back
	return (since < 0 || since >= Every) && c.looked.CompareAndSwap(last, now)
}

// Sure says whether a look at the root that began lately found it ours, so that no other
// run has waited long enough to be at work by now.
func (c *Root) Sure() bool {
	since := time.Duration(time.Now().UnixNano() - c.sure.Load())
	return since >= 0 && since < lease
}

// giveWay waits until a run whose claim was replaced, or that had none, has noticed. Both
// may wait for each other: the one that has lost the root by then has written nothing
// beneath it, and leaves it as it is.
func (c *Root) giveWay(ctx context.Context) error {
	if !c.replaced {
		return nil
	}
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(Noticed):
	}
	return c.Ours()
}

// Ours is an error if the root has another label than this run left on it, or
// another run's claim. A run to the same label is no other.
func (c *Root) Ours() error {
	began := time.Now().UnixNano()
	has, err := c.read()
	if err != nil {
		c.sure.Store(began) // to wait would not help: the commit fails if it lasts
		return err
	}
	label := has.String()
	is := label == *c.label.Load() || label == c.Want
	if is && c.claims {
		k, found, err := c.claimed()
		if err != nil {
			c.sure.Store(began)
			return err
		}
		is = !found || k.want == c.Want
	}
	if is {
		c.sure.Store(began)
		return nil
	}
	return &fs.PathError{Op: "relabel", Path: c.Path, Err: fmt.Errorf("%w: the root has %s by now", ErrOvertaken, cmp.Or(label, "no label"))}
}
