// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fastlabel/fastlabel/relabel"
	"github.com/fastlabel/fastlabel/relabel/contexts"
)

const restoreconHelp = `What restorecon(8) does, with its flags. It is PATH alone without -R. Without
-F only the type changes, and stays if the policy lists it as customizable.
What no rule names is skipped, and counted so. Rules are looked up
by the real path, of which a link at the end is not followed. DIR of -e need
not exist, nor lie in a PATH; a PATH that it is, or holds, is skipped and named.
PATHs may be patterns, in a list too: *, ?, [a-z], {a,b} and ~.

--root is setfiles -r: every PATH lies in DIR. The policy is DIR's own, or that
of --contexts; labels that this kernel does not know take CAP_MAC_ADMIN.

Beneath PATH these are skipped and named: mounts that are read-only or have
no labels; and filesystems of the kernel's own that are not mounted on /dev,
/sys or beneath, as in a chroot. Each may be a PATH itself. -m changes nothing:
every mount is looked at. There are no -D and -I, for setfiles' digest in
security.sehash, and no -W. PATH is not trusted: a run that is interrupted
leaves former and new labels; the next completes it. A file of several names
(hard links) with different rules gets the label of one, from each run anew, as
from restorecon; -n --hard-links error names it.
`

func restoreconCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "restorecon [-R] PATH...",
		Short:   "label by the policy's file contexts",
		Long:    restoreconHelp + "\n" + listed + inJSON,
		Example: "  fastlabel restorecon -R -v /etc\n  fastlabel restorecon -R -F -n -v -e /srv/pv /srv\n  fastlabel restorecon -R -F --root /mnt/image /mnt/image\n",

		DisableFlagsInUseLine: true,
	}
}

// parts are the values of --only.
var parts = map[string]relabel.Parts{"user": relabel.PartUser, "role": relabel.PartRole, "type": relabel.PartType, "level": relabel.PartLevel}

// byRules has the job label by rules, where the flags ask for that.
func (j *job) byRules(ctx context.Context) error {
	rules := relabel.Rules{Label: j.label, Parts: j.only}
	switch {
	case j.command == "restorecon":
		set, err := answer(ctx, "openat", j.contexts, func() (*contexts.Set, error) { return contexts.LoadRoot(cmp.Or(j.root, "/"), j.contexts) })
		if err != nil {
			return err
		}
		for _, note := range set.Notes() {
			j.Note("", note)
		}
		rules = relabel.Rules{Contexts: set, Parts: relabel.PartType, RootOnly: !j.recursive}
		if j.force {
			rules.Parts = 0
		}
	case j.only == 0:
		return nil
	default:
		j.label = shownParts(j.label, j.only)
	}
	j.tree = func(ctx context.Context, root, _ string, o *relabel.Options, check bool) (relabel.Report, error) {
		if check {
			return relabel.VerifyApply(ctx, root, rules, o)
		}
		return relabel.Apply(ctx, root, rules, o)
	}
	return nil
}

// shownParts is label with * for the parts that stay.
func shownParts(label string, only relabel.Parts) string {
	fields := strings.SplitN(label, ":", 4)
	for i, p := range []relabel.Parts{relabel.PartUser, relabel.PartRole, relabel.PartType, relabel.PartLevel}[:len(fields)] {
		if only&p == 0 {
			fields[i] = "*"
		}
	}
	return strings.Join(fields, ":")
}
