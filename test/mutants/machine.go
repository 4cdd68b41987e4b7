// SPDX-License-Identifier: Apache-2.0

package mutants

// machine breaks what only a kernel with SELinux and a policy can show: these die
// in test/system/selinuxvm.
func machine() []Mutant {
	const commit = "internal/commit/"
	return []Mutant{
		{
			Name: "alias-ignored", Inside: "TestAlias/ext4",
			Breaks: "what is compared is what the kernel prints",
			Edits:  edits("relabel/open_linux.go", "r.want = known", "_ = known"),
		},
		{
			Name: "context-unasked", Inside: "TestRefused/context",
			Breaks: "a mount with context= is told from one that has labels",
			Edits: edits(
				"internal/mountinfo/mountinfo.go", "case HasOption(m.Super, \"context\"):", "case HasOption(m.Super, \"none\"):",
				"internal/mountinfo/mountinfo.go", "case selinux && !HasOption(m.Super, \"seclabel\"):", "case selinux && m.FSType == \"none\":",
			),
		},
		{
			Name: "denied-ignored", Inside: "TestFailed/ext4",
			Breaks: "EPERM and EACCES are failures",
			Edits: edits(
				"internal/xattrio/verdict_linux.go", "{syscall.EPERM, Compare,", "{syscall.EPERM, Gone,",
				"internal/xattrio/verdict_linux.go", "{syscall.EACCES, Compare,", "{syscall.EACCES, Gone,",
			),
		},
		{
			Name: "links-followed", Inside: "TestAccess/private/ext4",
			Breaks: "links are labelled, not followed",
			Edits: edits(
				"internal/sys/sys_linux.go", " | unix.MOUNT_ATTR_NOSYMFOLLOW", "",
				"internal/sys/xattr_linux.go", "unix.SYS_SETXATTRAT, uintptr(dir), name, unix.AT_SYMLINK_NOFOLLOW", "unix.SYS_SETXATTRAT, uintptr(dir), name, 0",
				"internal/sys/xattr_linux.go", "unix.SYS_LSETXATTR", "unix.SYS_SETXATTR",
			),
		},
		{
			Name: "pair-as-range", Inside: "TestCanonical",
			Breaks: "the canonical form is the kernel's",
			Edits:  edits("internal/secctx/secctx.go", "append(b, sep...), int64(last)", "append(b, \".c\"...), int64(last)"),
		},
		{
			Name: "policy-unasked", Inside: "TestUnknown/type/ext4",
			Breaks: "a label that the policy does not know changes nothing, not even the seal",
			Edits:  edits("relabel/tree_linux.go", "r.open(ctx, true)", "r.open(ctx, false)"),
		},
		{
			Name: "root-first", Inside: "TestInterrupted/ext4",
			Breaks: "the label on the root comes last",
			Edits:  edits(commit+"root_linux.go", "k.seal = range list", "k.seal = range []string{c.Want}"),
		},
		{
			Name: "seal-kept", Inside: "TestAccess/shared/ext4",
			Breaks: "the root gets its label when all else is done",
			Edits:  edits(commit+"root_linux.go", "e := c.write(c.Want, committed); e != 0", "e := sys.Errno(0); e != 0"),
		},
		{
			Name: "seal-open", Inside: "TestInterrupted/ext4",
			Breaks: "the seal lets no one in to whom the label does not belong: it keeps the level",
			Edits:  edits("internal/secctx/seal.go", "seal.user = user\n", "seal.user = user\n\t\tseal.level = \"s0\"\n"),
		},
		{
			Name: "value-tail", Inside: "TestAccess/private/ext4",
			Breaks: "what is written is the label, and not a byte more",
			Edits:  edits("internal/xattrio/io_linux.go", "x.Attr.SetValue(label)", "x.Attr.SetValue(label + \"x\")"),
		},
	}
}
