// SPDX-License-Identifier: Apache-2.0

package commit

import (
	"io/fs"
	"slices"
	"strings"
	"syscall"

	"github.com/fastlabel/fastlabel/internal/secctx"
	"github.com/fastlabel/fastlabel/internal/sys"
	"github.com/fastlabel/fastlabel/internal/xattrio"
)

// A seal looks like a label that somebody may have set. So a run that seals leaves a second
// attribute on the root, its claim, until the second reading after its commit has ended. By that
// the next run, or a probe, knows that no label on the root is trusted, be it the seal or what stands
// there between the writes of claim, seal and label; and which labels the root had before, so that no
// seal of a later run is one of them while there are others.
//
// By rules the root has its old label, or that of its rule, whatever the entries beneath it get.
// The claim beside it wants none. It is left before the first write, until a run commits the root.
//
// The attribute takes CAP_SYS_ADMIN. To a process without, the kernel says that there is none.

// ClaimName is the attribute with the claim.
const ClaimName = "trusted.fastlabel.seal"

// mostFormer bounds the claim: an attribute has to fit into an inode or a block.
const mostFormer = 6

// claim records the run that seals a root.
type claim struct {
	want   string   // what all get; "" by rules: the root is trusted for no label
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

// parseClaim reads a claim. A text that String did not write says nothing.
func parseClaim(text string) claim {
	rest, begins := strings.CutPrefix(text, claimBegins)
	want, rest, hasSeal := strings.Cut(rest, claimSeal)
	seal, former, hasFormer := strings.Cut(rest, claimFormer)
	if !begins || !hasSeal || !hasFormer || strings.Contains(want+seal, " ") {
		return claim{}
	}
	return claim{want, seal, strings.Fields(former)}
}

func (c *Root) claimed() (k claim, is bool, err error) {
	if c.Stale {
		if _, e := sys.Refresh(c.FD, nil); e != 0 {
			return k, false, c.fail("statx", e)
		}
	}
	k, is, e := readClaim(sys.Opened, c.FD)
	if e != 0 {
		err = c.fail("fgetxattr", e)
	}
	return k, is, err
}

// readClaim reads the claim of fd. What is too long to be read, or was written by no run of this
// version, is a claim that says nothing.
func readClaim(way sys.Way, fd int) (k claim, is bool, e sys.Errno) {
	attr := sys.NewAttr(ClaimName+"\x00", "")
	switch n, e := attr.Get(way, fd, nil); e {
	case 0:
		return parseClaim(string(attr.Value(n))), true, 0
	case syscall.ERANGE:
		return claim{}, true, 0
	case syscall.ENODATA, syscall.ENOTSUP:
		return claim{}, false, 0
	default:
		return claim{}, false, e
	}
}

// write leaves the claim on the open directory fd; with over, in place of the one that is there.
func (k claim) write(fd int, over bool) sys.Errno {
	return sys.Setxattr(fd, ClaimName, []byte(k.String()), over)
}

// Unclaim removes the claim from the open directory fd.
func Unclaim(fd int) sys.Errno {
	switch e := sys.Removexattr(fd, ClaimName); e {
	case syscall.ENODATA, syscall.EPERM, syscall.ENOTSUP, // it was not there, or never could be
		syscall.EROFS: // the kernel says so whether it is there or not, and this run changes nothing
		return 0
	default:
		return e
	}
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

// Trust says how far a label on a root can be trusted for the tree.
type Trust uint8

const (
	Untrusted Trust = iota // the root has another label, or a claim
	Hidden                 // it has the label, and this process cannot see claims
	Trusted                // it has the label, and no claim
)

// Look reads a root's label, and how far it can be trusted for want in the tree. What is no
// directory has no claim. fd is Opened, or an O_PATH descriptor: ByDescriptor. op is the call that
// failed.
func Look(way sys.Way, fd int, dir bool, want string) (t Trust, has string, op string, e sys.Errno) {
	io := xattrio.New(want)
	label, op, e := io.Read(xattrio.Target{FD: fd, Pinned: way == sys.ByDescriptor})
	if e != 0 {
		return Untrusted, "", op, e
	}
	if has = label.String(); has != want {
		return Untrusted, has, "", 0
	}
	if !dir {
		return Trusted, has, "", 0
	}
	switch _, claimed, e := readClaim(way, fd); {
	case e != 0 || claimed:
		return Untrusted, has, "getxattr", e
	case !sys.HasTrusted():
		return Hidden, has, "", 0
	}
	return Trusted, has, "", 0
}

// EntriesHave reports whether each entry of a directory, which is open for reading, has the label.
func EntriesHave(fd int, path, want string) (bool, error) {
	io := xattrio.New(want)
	if kind, e := sys.FSType(fd); e == 0 {
		io.Stale = sys.Stale(kind)
	}
	for d, err := range sys.Entries(fd) {
		if err != nil {
			return false, &fs.PathError{Op: "getdents64", Path: path, Err: err}
		}
		op, has := "openat", xattrio.Label{}
		at, e := sys.Openat(fd, d.Cname(), sys.OpenPath, 0)
		if e == 0 {
			has, op, e = io.Read(xattrio.Target{FD: at, Pinned: true})
			sys.Close(at)
		}
		switch verdict := xattrio.VerdictOf(e); {
		case verdict == xattrio.Gone, verdict == xattrio.Unlabelable: // the root has one
		case e != 0:
			return false, &fs.PathError{Op: op, Path: path + "/" + string(d.Name), Err: e}
		case !has.Is(want):
			return false, nil
		}
	}
	return true, nil
}

// ClaimRules has nobody trust the directory that fd names, whatever label it has, before anything
// is written later. o is its filesystem's. first says that no claim was there before.
func ClaimRules(fd int, o Order) (first bool, e sys.Errno) {
	found, is, e := readClaim(sys.Opened, fd)
	if e != 0 || is && found.want == "" {
		return false, e
	}
	k := claim{former: found.former}
	io := xattrio.New("")
	if has, _, e := io.Read(xattrio.Target{FD: fd}); e == 0 {
		k.spare(found.want, has.String())
	}
	switch e := k.write(fd, true); e {
	case 0:
		if e = barriers[o].one.on(fd, func(string) {}); e == syscall.EINVAL { // cgroups and others of the kernel's own: there is no disk
			e = 0
		}
		return !is, e
	case syscall.EPERM, syscall.ENOTSUP, syscall.EROFS: // as Unclaim
		return false, 0
	default:
		return false, e
	}
}

// HasRules reports whether the directory that fd names has the claim that ClaimRules leaves. fd
// may be an O_PATH descriptor.
func HasRules(fd int) bool {
	k, is, _ := readClaim(sys.ByDescriptor, fd)
	return is && k.want == ""
}
