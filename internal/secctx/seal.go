// SPDX-License-Identifier: Apache-2.0

package secctx

import (
	"slices"
	"strings"
)

// sealUsers are the SELinux users a seal may have, in the order they are tried. refpolicy's
// policy/users declares all three. Three, because the wanted label and the old one can rule out
// one each. system_u is not among them: it is the user that container runtimes ask for, so an
// interrupted relabel to another user's label would leave a root that reads as done to them.
var sealUsers = [...]string{"unconfined_u", "root", "staff_u"}

// Seals returns the labels that the root may have while a relabel from old to
// want is under way, the best first. Each is canonical and differs from old
// and from want, so it is trusted for neither; and from the former labels, which
// the root had before runs that were interrupted. old is as it was read, "" if there
// was none. There is none for a want that is not a context, and at least one
// otherwise, unless want is so long that none is short enough (4,083 bytes and
// more). The caller writes the first that the kernel takes.
//
// First the wanted label under another SELinux user. Type and level, and with them access, are
// already those of the wanted label, so nobody entitled loses the root while the walk runs, unless
// the policy separates users (UBAC). The kernel accepts object_r with every user it knows, but a
// policy may lack the user (EINVAL), and to change it the process's type must be one that
// can_change_object_identity (refpolicy's policy/constraints; else EACCES).
//
// Last, for a label with categories, the wanted user, role and type with the two highest
// categories: the process needs no right but the one to relabel. Until the commit it locks out
// processes that the wanted label lets in; a shared label, under which too many may be at work,
// gets no such seal. The sensitivity stays: a lower one would open the root to those cleared for
// less.
//
// A prober who asks for exactly the seal, and cannot read the claim, takes
// it for a finished label: someone who has the same volume under two SELinux users, or
// a container that drew c1022,c1023, one of 523,776 pairs.
func Seals(old, want string, former ...string) []string {
	c, err := parse(want)
	if err != nil {
		return nil
	}
	taken := append([]string{c.String()}, former...)
	// Without SELinux the old label may be stored in another form. If it is
	// no context at all, it is no candidate either.
	if canonical, err := Canonical(old); err == nil {
		taken = append(taken, canonical)
	}
	var list []string
	add := func(seal context) {
		if s := seal.String(); len(s) < longest && !slices.Contains(taken, s) {
			list = append(list, s)
		}
	}
	for _, user := range sealUsers {
		seal := c
		seal.user = user
		add(seal)
	}
	high := c.level[strings.LastIndexByte(c.level, '-')+1:]
	if sens, _, private := strings.Cut(high, ":"); private {
		c.level = sens + ":c1022,c1023"
		add(c)
	}
	return list
}

// IsSeal reports whether have is a seal of a relabel to want, whatever the label before it was. It
// is a hint and no proof, since a user may have given the same label by hand.
func IsSeal(have, want string) bool {
	have = Trim(have)
	return have != want && slices.Contains(Seals("", want), have)
}
