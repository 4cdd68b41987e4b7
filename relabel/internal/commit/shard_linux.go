// SPDX-License-Identifier: Apache-2.0

package commit

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/fastlabel/fastlabel/relabel/internal/sys"
)

// Several runs, each a shard, label what is beneath one root, on several machines and at
// any times, and a last one commits. The claim of the first that comes says how many there
// are, and has a generation, which is random. The others find that claim, and the root
// with its seal, and join. A shard that is done leaves its proof beside the claim: an
// attribute of its own, with that generation.
//
//	shard 0:   claims g, seals, waits ▶ walks ▶ syncfs ▶ still g? ▶ proof 0 of g
//	shard 1:           joins g ▶ voids proof 1 ▶ walks ▶ syncfs ▶ still g? ▶ proof 1 of g
//	the last:                                     all of g? ▶ commit, as ever; still all of g?
//
// A run to another label, or of another number of shards, puts its own claim there, and
// every proof of g is void with that, by whatever run and when. A run to the same label
// changes nothing of it: it writes what they write. A proof says that all which was a
// shard's had the label when it ended. So a shard that is run again voids its own before
// it begins, for it may fail; and who commits asks for all proofs again when the root has
// been read a last time.
//
// What other programs do to labels during that time is noticed by the root's label alone, as
// elsewhere, and so is a run without CAP_SYS_ADMIN, which can neither see nor replace a
// claim: but here the time for it is longer.
//
// Where there are no trusted attributes, as on NFS, claim and proofs are user attributes,
// which the owner of the volume can write, and others who may write in its root. So there they
// are believed in what cannot harm: that the root is sealed, if it has one of the labels
// that are seals of this one; that a shard is not done; and that another's claim is in
// place of this one. That all are done is not: who commits reads everything, as a single run
// does. Single runs neither read nor leave user attributes.

// Shard is which part of the work a run does.
type Shard struct {
	Index int // Commits: it commits what the others have done
	Of    int
	Level int    // at which the tree is divided, by the one who comes first
	Met   uint64 // what the run met in the root, when it is about to end
	How   uint32 // it labels: a digest of the options that have to be the same for all
}

// Commits is the Index of the run that labels nothing and commits.
const Commits = -1

// joining says that what this run leaves on the root is for its shards.
func (c *Root) joining() bool { return c.Shard.labels() && !c.alone.Load() }

// labels says that the run labels a part, and commits nothing.
func (s *Shard) labels() bool { return s != nil && s.Index != Commits }

func (s *Shard) commits() bool { return s != nil && s.Index == Commits }

// errJoin says that another shard came first.
var errJoin = errors.New("there is a claim by now")

const (
	shardsForm = "%d/%d/%s/%08x" // how many, level, generation, How
	proofForm  = "version=1 shards=%s met=%016x"
	// joinTries bounds how often a shard finds that another came first.
	joinTries = 8
	// void is the generation of none.
	void = "0000000000000000"
)

// ProofName is the attribute that holds the proof of shard i.
func ProofName(i int) string { return fmt.Sprintf("trusted.fastlabel.shard.%d", i) }

// named is the attribute name, of trusted ones, or what stands for it among those of users.
func named(name string, user bool) string {
	if user {
		return "user" + strings.TrimPrefix(name, "trusted")
	}
	return name
}

// Proves says whether it is known by the proofs that the shards are done.
func (c *Root) Proves() bool { return !c.user }

// word is what a claim, or a proof, says of the shards.
func (s *Shard) word(generation string) string {
	return fmt.Sprintf(shardsForm, s.Of, s.Level, generation, s.How)
}

// parseShards reads what a claim says of shards; of is 0 where it says nothing.
func parseShards(text string) (of, level int, how uint32) {
	var generation string
	if n, err := fmt.Sscanf(strings.ReplaceAll(text, "/", " "), "%d %d %s %x", &of, &level, &generation, &how); err != nil || n != 4 || of < 1 || of > MostShards {
		return 0, 0, 0
	}
	return of, level, how
}

// MostShards have their proofs in one block of ext4 beside the rest, where blocks have
// 4 KiB and the root has few other attributes. Where there is no room a shard fails.
const MostShards = 32

// Void is called by a run that is about to write want beneath the directory that fd names,
// and is not one of the shards in its claim: it makes their proofs void, unless they give
// want too. The seal stays. It returns which shards they were; want "" is no label.
func Void(fd int, want string) (shards string, e sys.Errno) {
	k, is := readClaim(fd, (*sys.Attr).Fgetxattr)
	if !is || k.shards == "" || k.want == want {
		return "", 0
	}
	shards, k.shards = k.shards, ""
	switch e = sys.NewAttr(ClaimName, []byte(k.String())).Fsetxattr(fd); e {
	case 0:
		return shards, sys.Fsync(fd)
	case syscall.EROFS: // nothing is written there
		return "", 0
	}
	return shards, e
}

func (c *Root) void(want string) error {
	c.At("fsetxattr")
	defer c.At("")
	shards, e := Void(c.FD, want)
	if shards == "" {
		return nil
	}
	if c.shards = shards; e != 0 {
		return c.fail("fsetxattr", e)
	}
	c.noteVoid(shards)
	return nil
}

func (c *Root) noteVoid(shards string) {
	of, _, _ := parseShards(shards)
	c.Note("what any of %d other shards has proved is void: all are to be run again", of)
}

// Join makes the run one of the root's shards, or the first of them, and voids the proof
// that it left there before.
func (c *Root) Join(ctx context.Context) error {
	c.unmark()
	err := errJoin
	for try := 0; try < joinTries && (errors.Is(err, errJoin) || errors.Is(err, ErrOvertaken)); try++ {
		has, unread := c.read()
		if unread != nil {
			return unread
		}
		c.have, c.sealed = has.String(), false
		c.leaves(c.have)
		if c.joins(ctx) {
			err = nil
			break
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if k, _ := c.claimed(); k.shards != "" && k.shards != c.shards {
			c.noteVoid(k.shards)
		}
		c.shards = c.Shard.word(rand.Text()[:len(void)])
		if err = c.writeSeal(); err != nil {
			continue
		}
		if !c.sealed {
			return fmt.Errorf("%s: %w: shards need a root that is sealed", c.Path, errors.ErrUnsupported)
		}
		c.replaced = c.shares() || c.replaced
		err = c.GiveWay(ctx)
	}
	if err != nil {
		return err
	}
	c.have, c.wrong = *c.left.Load(), true
	c.At("fsetxattr")
	if err := c.leaveProof(c.Shard.word(void)); err != nil {
		return err
	}
	return c.noteChange()
}

// joins says whether there is a claim of the same shards, and the root has the seal of it:
// it may be about to have it. A root that has what it had before the claim is waited for
// longer, for on a network disk the write of the seal takes seconds at times.
func (c *Root) joins(ctx context.Context) bool {
	patience := Noticed
	for began := time.Now(); ctx.Err() == nil && time.Since(began) < patience; time.Sleep(Every / 25) {
		k, is := c.claimed()
		of, level, how := parseShards(k.shards)
		if !is || k.want != c.Want || of != c.Shard.Of || how != c.Shard.How || k.shards == c.shards {
			return false // or this run's own, whose seal is gone
		}
		has, err := c.read()
		switch label := has.String(); {
		case err != nil: // it is read again
		case label == k.seal:
			if now, _ := c.claimed(); now.shards != k.shards {
				continue // the seal may be another's
			}
			c.shards, c.Shard.Level = k.shards, level
			c.claims, c.sealed = true, true
			c.leaves(k.seal)
			return true
		case k.precedes(label):
			patience = Sealed
		default:
			patience = Noticed
		}
	}
	return false // it was given up, or the root was labelled since
}

// holds says whether the root, which has label, has the claim of this run's shards and
// what the run has left there; and all their proofs, if it is to commit them.
func (c *Root) holds(label string) bool {
	k, is := c.claimed()
	if !is || k.want != c.Want || k.shards != c.shards || label != *c.left.Load() {
		return false
	}
	if c.Shard.labels() {
		return true
	}
	missing, _ := c.proofs()
	return len(missing) == 0
}

// prove leaves the proof that this shard is done.
func (c *Root) prove(ctx context.Context) error {
	if err := c.Sync("syncfs", sys.Syncfs); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := c.Ours(); err != nil {
		return err
	}
	return c.leaveProof(c.shards)
}

func (c *Root) leaveProof(shards string) error {
	c.At("fsetxattr")
	proof := fmt.Sprintf(proofForm, shards, c.Shard.Met)
	if e := sys.NewAttr(named(ProofName(c.Shard.Index), c.user), []byte(proof)).Fsetxattr(c.FD); e != 0 {
		return c.fail("fsetxattr", e)
	}
	return c.Sync("fsync", sys.Fsync)
}

// Gather is for the run that commits what shards have done. It is an error if that is not
// all; alike says that all of them met the same in the root, which was met. When the root
// was read is not known, so at the end it is read again whatever its times say. A commit
// that was killed may have left the label, in place of which the root is sealed again.
func (c *Root) Gather() (met uint64, alike bool, err error) {
	k, is := c.claimed()
	why := ""
	switch of, _, how := parseShards(k.shards); {
	case !is || of == 0 || k.seal != c.have && !c.unproved:
		why = "none to this label has begun, or another run made what they proved void"
	case k.want != c.Want:
		why = "they are to the label " + k.want
	case of != c.Shard.Of:
		why = fmt.Sprintf("there are %d of them, not %d", of, c.Shard.Of)
	case how != c.Shard.How:
		why = "they have other options: what is excluded, other filesystems, or hard links"
	}
	if why != "" {
		return 0, false, fmt.Errorf("%s: %w: %s", c.Path, ErrShards, why)
	}
	c.shards, c.claims, c.sealed = k.shards, true, true
	missing, all := c.proofs()
	if len(missing) > 0 {
		c.claims, c.sealed = false, false
		return 0, false, fmt.Errorf("%s: %w: %s of 0 to %d", c.Path, ErrShards, strings.Join(missing, ", "), c.Shard.Of-1)
	}
	alike = true
	for _, one := range all {
		alike = alike && one == all[0]
	}
	if c.unproved {
		err = c.writeSeal()
	}
	return all[0], alike, err
}

// Again is for a root that vouches for the label already.
func (c *Root) Again() { c.alone.Store(true) }

// proofs reads the proofs of the shards in the claim, what each has met, and which are
// missing.
func (c *Root) proofs() (missing []string, met []uint64) {
	for i := range c.Shard.Of {
		m, is := readProof(c.FD, (*sys.Attr).Fgetxattr, i, c.shards, c.user)
		if !is {
			missing = append(missing, strconv.Itoa(i))
		}
		met = append(met, m)
	}
	return missing, met
}

func readProof(fd int, get func(*sys.Attr, int) (int, sys.Errno), i int, shards string, user bool) (met uint64, is bool) {
	attr := sys.NewAttr(named(ProofName(i), user), nil)
	n, e := get(attr, fd)
	if e != 0 || shards == "" {
		return 0, false
	}
	text := string(attr.Value(n))
	_, last, _ := strings.Cut(text, " met=")
	met, err := strconv.ParseUint(last, 16, 64)
	return met, err == nil && text == fmt.Sprintf(proofForm, shards, met)
}

// Proved tells how many shards label the directory that fd names, which has the label have,
// with want, and how many of those have left their proof. fd may be an O_PATH one.
func Proved(fd int, have, want string) (proved, of int) {
	get := (*sys.Attr).GetxattrFd
	k, is, e := readNamed(fd, get, false)
	user := e == syscall.ENOTSUP
	if user {
		k, is, _ = readNamed(fd, get, true)
	}
	if !is || k.want != want || have != k.seal && have != want {
		return 0, 0
	}
	of, _, _ = parseShards(k.shards)
	for i := range of {
		if _, is := readProof(fd, get, i, k.shards, user); is {
			proved++
		}
	}
	return proved, of
}

// sweep removes proofs, which are void by now.
func (c *Root) sweep() {
	of, _, _ := parseShards(c.shards)
	for i := range of {
		switch e := sys.NewAttr(named(ProofName(i), c.user), nil).Fremovexattr(c.FD); e {
		case 0, syscall.ENODATA:
		default:
			c.Note("the attribute %s could not be removed: %v", ProofName(i), e)
		}
	}
}
