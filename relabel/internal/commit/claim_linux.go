// SPDX-License-Identifier: Apache-2.0

package commit

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/fastlabel/fastlabel/internal/secctx"
	"github.com/fastlabel/fastlabel/relabel/internal/sys"
)

// A seal looks like a label that may have been given by hand, and a run that
// was interrupted leaves one. So a run that seals leaves a second attribute on the
// root, its claim, until the second reading after its commit has ended. By that the next
// run, or a probe, knows two things: that no label on the root vouches, be it the seal, or
// what stands there between the writes of claim, seal and label; and which labels the root
// had before, so that no seal of a later run is one of them while there are others, however
// many are interrupted.
//
// And a claim is created, or found: of two runs that share no lock, as from pods
// with a /run of their own, one finds the other's. It puts its own in its place and
// waits until the other, if it is still at work, has noticed: each run looks at its
// root before the commit, after the second reading, and four times a second in between;
// where such a look is late, it writes nothing until that has ended.
//
//	A: creates its claim, seals ....... looks: not its own, stops
//	B:        finds it, puts its own, seals ....... walks, commits
//
// The attribute takes CAP_SYS_ADMIN. Without, the label alone is looked at.
//
// A claim that wants no label is of a run by rules: see Disavow.
//
// A run that finds the root right leaves no claim there, for all may be right. But it
// writes what it finds wrong, and that is what a rival has just written. When it notices
// that the root is not its own any more, and it has written anything, it seals the root
// again with its claim, so that the rival notices in turn. That comes at most a lease later
// than the last write: a rival that was committed in that time has said that it is done,
// and its root is sealed. A lock on the root would show the two to each other, but it is
// the lock of the application that the volume belongs to.

// ClaimName is the attribute that holds the claim.
const ClaimName = "trusted.fastlabel.seal"

const (
	// Every is how often a run asks if its root is still its own, at least.
	Every = 250 * time.Millisecond
	// Noticed is how long a run waits for another whose claim it has replaced.
	Noticed = 4 * Every
	// lease is how long a run writes after a look at its root began: less than Noticed, for
	// the call under way has to end too.
	lease = 3 * Every
)

// mostFormer bounds the claim: an attribute has to fit into an inode or a block.
const mostFormer = 6

// claim is what a run says of a root that is sealed.
type claim struct {
	want   string   // what the run gives; "" by rules: the root vouches by no label
	seal   string   // what the root has until then; "" if it had no label, and needs no seal
	former []string // what no seal may be, the newest last
}

func (k claim) String() string {
	return claimBegins + k.want + claimSeal + k.seal + claimFormer + strings.Join(k.former, " ")
}

const (
	claimBegins = "version=2 want="
	claimSeal   = " seal="
	claimFormer = " former="
)

// parseClaim reads a claim; a text that String did not write is none.
func parseClaim(text string) (k claim, ok bool) {
	rest, begins := strings.CutPrefix(text, claimBegins)
	want, rest, hasSeal := strings.Cut(rest, claimSeal)
	seal, former, hasFormer := strings.Cut(rest, claimFormer)
	if !begins || !hasSeal || !hasFormer || strings.Contains(want+seal, " ") {
		return claim{}, false
	}
	k = claim{want: want, seal: seal}
	if former != "" {
		k.former = strings.Split(former, " ")
	}
	return k, true
}

// claimed reads the claim that is on the root.
func (c *Root) claimed() (claim, bool) {
	if c.Stale {
		sys.Refresh(c.FD, nil)
	}
	return readClaim(sys.Opened, c.FD)
}

// readClaim reads the claim of fd, which is sys.Opened, or sys.ByDescriptor.
func readClaim(way sys.Way, fd int) (claim, bool) {
	attr := sys.NewAttr(ClaimName, "")
	n, e := attr.Get(way, fd, nil)
	if e != 0 {
		return claim{}, false
	}
	return parseClaim(string(attr.Value(n)))
}

// unfinished says whether a run to the label has left its claim on the root.
func (c *Root) unfinished() bool {
	k, is := c.claimed()
	return is && k.want == c.Want
}

// isSeal says whether the root has the seal that its claim names, or is one of rules.
func (c *Root) isSeal() bool {
	k, is := c.claimed()
	return is && (k.seal == c.have || k.want == "")
}

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

// isSealed says whether the root, which has the claim found if is, has exactly the seal that
// this run would write.
func (c *Root) isSealed(found claim, is bool) bool {
	return is && found.want == c.Want && found.seal == c.have && c.have != ""
}

// stake leaves a claim with each seal that may be written, the best first, until
// write takes one.
func (c *Root) stake(found claim, is bool, write func(seal string) (bool, error)) error {
	k := claim{want: c.Want, former: slices.Clone(found.former)}
	if !is || found.seal != c.have {
		k.spare(c.have)
	}
	if is && found.want != c.Want {
		k.spare(found.want) // some entries have it
	}
	list := secctx.Seals(c.have, c.Want, k.former...)
	if len(list) == 0 {
		list = secctx.Seals(c.have, c.Want)
	}
	if c.have == "" {
		list = []string{""} // it vouches for nothing as it is
	}
	for _, k.seal = range list {
		c.At("fsetxattr")
		e := syscall.EEXIST
		if !is {
			if e = sys.Createxattr(c.FD, ClaimName, []byte(k.String())); e == syscall.EEXIST {
				if other, is := c.claimed(); is { // another run came first
					return c.stake(other, is, write)
				}
			}
		}
		if e == syscall.EEXIST { // it is the claim that was found, or none
			e = sys.NewAttr(ClaimName, k.String()).Set(sys.Opened, c.FD, nil)
		}
		c.claims = e == 0
		if !is && (e == syscall.ENOSPC || e == syscall.EDQUOT) { // its owner may have seen to that
			c.Note("the root has no room for a claim (%v): if this run is killed, its seal may be taken for a label", e)
		}
		is = true
		c.replaced = found.want != "" && found.want != c.Want
		if done, err := write(k.seal); done || err != nil {
			return err
		}
	}
	return nil
}

// spare has no seal be one of labels.
func (k *claim) spare(labels ...string) {
	for _, label := range labels {
		if canonical, err := secctx.Canonical(label); err == nil && !slices.Contains(k.former, canonical) {
			k.former = append(k.former, canonical)
		}
	}
	k.former = k.former[max(0, len(k.former)-mostFormer):]
}

// GiveWay waits until a run whose claim was replaced, or that had none, has noticed. Both
// may wait for each other: the one that has lost the root by then has written nothing
// beneath it, and leaves it as it is.
func (c *Root) GiveWay(ctx context.Context) error {
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

// disclaim takes the claim off a root that is committed. After a power loss it may be there
// again: then the next run reads everything.
func (c *Root) disclaim() {
	c.At("fremovexattr")
	defer c.At("")
	if e := removeClaim(sys.Opened, c.FD); e != 0 {
		c.Note("the attribute %s could not be removed: %v", ClaimName, e)
	}
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
	is := label == *c.left.Load() || label == c.Want
	if is && c.claims {
		k, found := c.claimed()
		is = !found || k.want == c.Want
	}
	if is {
		c.sure.Store(began)
		return nil
	}
	return &fs.PathError{Op: "relabel", Path: c.Path, Err: fmt.Errorf("%w: the root has %s by now", ErrOvertaken, cmp.Or(label, "no label"))}
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
	c.have = has.String()
	c.leaves(c.have)
	healed := !c.claims && c.Written() > 0
	if (healed || !c.isSeal()) && !c.NoSeal {
		c.reseal()
	}
	c.Withheld()
}
