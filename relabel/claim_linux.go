// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/fastlabel/fastlabel/internal/secctx"
	"github.com/fastlabel/fastlabel/relabel/internal/sys"
	"github.com/fastlabel/fastlabel/relabel/internal/xattrio"
)

// A seal looks like a label that may have been given by hand, and a run that
// was interrupted leaves one. So a run that seals leaves a second attribute on the
// root, its claim, until it commits. By that the next run, or a probe, knows two
// things: which seal is one, and so vouches for nothing, whatever label is asked for;
// and which labels the root had before, so that no seal of a later run is one of them
// while there are others, however many are interrupted.
//
// And a claim is created, or found: of two runs that share no lock, as from pods
// with a /run of their own, one finds the other's. It puts its own in its place and
// waits until the other, if it is still at work, has noticed: each run looks at its
// root before the commit, after the second reading, and four times a second in between.
//
//	A: creates its claim, seals ....... looks: not its own, stops
//	B:        finds it, puts its own, seals ....... walks, commits
//
// Like the mark it takes CAP_SYS_ADMIN. Without, the label alone is looked at.
//
// A run that finds the root right leaves no claim there, for all may be right. But it
// writes what it finds wrong, and that is what a rival has just written. So each run
// shares a lock on the root, before it reads the label, and who has sealed the root
// asks if others do. The owner of the volume can have that lock for ever; what he gets
// by it is that the run waits, as for a claim, once.

// claimName is the attribute that holds the claim.
const claimName = "trusted.fastlabel.seal"

const heedEvery = 250 * time.Millisecond

// noticed is how long a run waits for another whose claim it has replaced.
const noticed = 4 * heedEvery

// mostFormer bounds the claim: an attribute has to fit into an inode or a block.
const mostFormer = 6

// claim is what a run says of a root that is sealed.
type claim struct {
	want   string   // what the run gives
	seal   string   // what the root has until then; "" if it had no label, and needs no seal
	former []string // what no seal may be, the newest last
}

const claimForm = "version=1 want=%s seal=%s former=%s"

func (k claim) String() string {
	return fmt.Sprintf(claimForm, k.want, k.seal, strings.Join(k.former, " "))
}

// parseClaim reads a claim; one that is not exactly as String writes it is none.
func parseClaim(text string) (k claim, ok bool) {
	f := strings.SplitN(text, " ", 4)
	if len(f) < 4 {
		return claim{}, false
	}
	k.want, k.seal = strings.TrimPrefix(f[1], "want="), strings.TrimPrefix(f[2], "seal=")
	if former := strings.TrimPrefix(f[3], "former="); former != "" {
		k.former = strings.Split(former, " ")
	}
	return k, k.String() == text
}

// claimed reads the claim that is on the root.
func (c *record) claimed() (claim, bool) { return readClaim(c.fd, (*sys.Attr).Fgetxattr) }

func readClaim(fd int, get func(*sys.Attr, int) (int, sys.Errno)) (claim, bool) {
	attr := sys.NewAttr(claimName, nil)
	n, e := get(attr, fd)
	if e != 0 {
		return claim{}, false
	}
	return parseClaim(string(attr.Value(n)))
}

// isSeal says whether the root, which has the label wanted, has it as the seal of
// a run to another: then it vouches for nothing.
func (c *record) isSeal() bool {
	k, is := c.claimed()
	return is && k.seal == c.have
}

// heed stops the run when its root is not its own any more. That is asked four times a
// second, by whichever worker comes first.
func (w *worker) heed() {
	last, now := w.heeded.Load(), time.Now().UnixNano()
	since := time.Duration(now - last) // less than nothing where the clock was put back
	if w.ours == nil || since >= 0 && since < heedEvery || !w.heeded.CompareAndSwap(last, now) {
		return
	}
	w.now(xattrio.Fgetxattr)
	if err := w.ours(); errors.Is(err, ErrOvertaken) {
		w.halt(err)
	}
}

// isSealed says whether the root has exactly the seal that this run would write.
func (c *record) isSealed() bool {
	found, is := c.claimed()
	return is && found.want == c.want && found.seal == c.have && c.have != ""
}

// stake leaves a claim with each seal that may be written, the best first, until
// write takes one. former are labels that no seal may be, beside what the root has.
func (c *record) stake(former []string, write func(seal string) (bool, error)) error {
	found, is := c.claimed()
	k := claim{want: c.want, former: slices.Clone(found.former)}
	if !is || found.seal != c.have {
		former = append(former, c.have)
	}
	if is && found.want != c.want {
		former = append(former, found.want) // some entries have it
	}
	for _, label := range former {
		if canonical, err := secctx.Canonical(label); err == nil && !slices.Contains(k.former, canonical) {
			k.former = append(k.former, canonical)
		}
	}
	k.former = k.former[max(0, len(k.former)-mostFormer):]
	list := secctx.Seals(c.have, c.want, k.former...)
	if len(list) == 0 {
		list = secctx.Seals(c.have, c.want)
	}
	if c.have == "" {
		list = []string{""} // it vouches for nothing as it is
	}
	for _, k.seal = range list {
		c.at("fsetxattr")
		attr := sys.NewAttr(claimName, []byte(k.String()))
		put := attr.Fsetxattr
		if !is {
			put = attr.Fcreatexattr
		}
		switch put(c.fd) {
		case 0:
			c.claims = true
		case syscall.EEXIST:
			return c.stake(former, write) // another run came first
		}
		is = true
		c.replaced = found.want != "" && found.want != c.want
		if done, err := write(k.seal); done || err != nil {
			return err
		}
	}
	return nil
}

// shares says whether other runs are at work, or the owner holds a lock on the root.
func (c *record) shares() bool {
	c.at("flock")
	defer c.at("")
	e := sys.TryFlock(c.fd)
	sys.TryShare(c.fd)
	return e == errWouldBlock
}

// giveWay waits until a run whose claim was replaced, or that had none, has noticed.
func (c *record) giveWay(ctx context.Context) error {
	if !c.replaced {
		return nil
	}
	select {
	case <-ctx.Done():
	case <-time.After(noticed):
	}
	return context.Cause(ctx)
}

// disclaim takes the claim off a root that is committed.
func (c *record) disclaim() {
	c.at("fremovexattr")
	defer c.at("")
	switch e := sys.NewAttr(claimName, nil).Fremovexattr(c.fd); e {
	case 0, errNoLabel, syscall.EPERM, syscall.ENOTSUP:
	default:
		c.note("the attribute %s could not be removed: %v", claimName, e)
	}
}

// ours is an error if the root has another label than this run left on it, or
// another run's claim. A run to the same label is no other.
func (c *record) ours() error {
	attr := sys.NewAttr(xattrio.Attribute, nil)
	n, e := attr.Fgetxattr(c.fd)
	label := ""
	switch e {
	case 0:
		label = secctx.Trim(attr.Value(n))
	case errNoLabel, errLongLabel:
	default:
		return pathError("fgetxattr", c.root.Path, e)
	}
	is := label == *c.left.Load() || label == c.want
	if is && c.claims {
		k, found := c.claimed()
		is = !found || k.want == c.want
	}
	if is {
		return nil
	}
	if label == "" {
		label = "no label"
	}
	return &fs.PathError{Op: "relabel", Path: c.root.Path, Err: fmt.Errorf("%w: the root has %s by now", ErrOvertaken, label)}
}

// cede is for a root that is not ours any more: it is left to a run that has
// sealed it, which labels everything anew. Any other label on it vouches for what
// this run has written since, and has to go.
func (c *record) cede() {
	attr := sys.NewAttr(xattrio.Attribute, nil)
	n, e := attr.Fgetxattr(c.fd)
	if e != 0 {
		return
	}
	c.have = secctx.Trim(attr.Value(n))
	c.leaves(c.have)
	if k, is := c.claimed(); !is || k.seal != c.have {
		c.unmark()
		if !c.o.NoSeal {
			c.reseal()
		}
	}
	if o := c.root.top.outcome; o != skipped && !c.root.top.spoiled {
		c.recount(o, skipped)
	}
}
