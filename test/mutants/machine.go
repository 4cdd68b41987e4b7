// SPDX-License-Identifier: Apache-2.0

package mutants

// machine breaks what only a kernel with SELinux and a policy can show: these die
// in test/system/selinuxvm.
func machine() []Mutant {
	const commit = "internal/commit/"
	return []Mutant{
		mutant("alias-ignored", "; TestAlias/ext4", "what is compared is what the kernel prints",
			"relabel/open_linux.go", "r.want = known", "_ = known"),
		mutant("context-unasked", "; TestRefused/context", "a mount with context= is told from one that has labels",
			"internal/mountinfo/mountinfo.go", "case HasOption(m.Super, \"context\"):", "case HasOption(m.Super, \"none\"):",
			"internal/mountinfo/mountinfo.go", "case selinux && !HasOption(m.Super, \"seclabel\"):", "case selinux && m.FSType == \"none\":"),
		mutant("denied-ignored", "; TestFailed/ext4", "EPERM and EACCES are failures",
			"internal/xattrio/verdict_linux.go", "{syscall.EPERM, Compare,", "{syscall.EPERM, Gone,",
			"internal/xattrio/verdict_linux.go", "{syscall.EACCES, Compare,", "{syscall.EACCES, Gone,"),
		mutant("links-followed", "; TestAccess/private/ext4", "links are labelled, not followed",
			"internal/sys/sys_linux.go", " | unix.MOUNT_ATTR_NOSYMFOLLOW", "",
			"internal/sys/xattr_linux.go", "unix.SYS_SETXATTRAT, uintptr(dir), name, unix.AT_SYMLINK_NOFOLLOW", "unix.SYS_SETXATTRAT, uintptr(dir), name, 0",
			"internal/sys/xattr_linux.go", "unix.SYS_LSETXATTR", "unix.SYS_SETXATTR"),
		mutant("pair-as-range", "; TestCanonical", "the canonical form is the kernel's",
			"internal/secctx/secctx.go", "append(b, sep...), int64(last)", "append(b, \".c\"...), int64(last)"),
		mutant("policy-unasked", "; TestUnknown/type/ext4", "a label that the policy does not know changes nothing, not even the seal",
			"relabel/tree_linux.go", "r.open(ctx, true)", "r.open(ctx, false)"),
		mutant("root-first", "; TestInterrupted/ext4", "the label on the root comes last",
			commit+"root_linux.go", "k.seal = range list", "k.seal = range []string{c.Want}"),
		mutant("seal-kept", "; TestAccess/shared/ext4", "the root gets its label when all else is done",
			commit+"root_linux.go", "e := c.write(c.Want, committed); e != 0", "e := sys.Errno(0); e != 0"),
		mutant("seal-open", "; TestInterrupted/ext4", "the seal lets no one in to whom the label does not belong: it keeps the level",
			"internal/secctx/seal.go", "seal.user = user\n", "seal.user = user\n\t\tseal.level = \"s0\"\n"),
		mutant("value-tail", "; TestAccess/private/ext4", "what is written is the label, and not a byte more",
			"internal/xattrio/io_linux.go", "x.Attr.SetValue(label)", "x.Attr.SetValue(label + \"x\")"),
	}
}
