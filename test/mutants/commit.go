// SPDX-License-Identifier: Apache-2.0

package mutants

// commits break what makes the root's label true: the seal comes first, the label
// last, and each comes to the disk before what relies on it.
func commits() []Mutant {
	const root = "internal/commit/root_linux.go"
	const rival = "internal/commit/rival_linux.go"
	const claim = "internal/commit/claim_linux.go"
	const order = "internal/commit/order_linux.go"
	const times = "internal/commit/times_linux.go"
	return []Mutant{
		{
			Name: "seal-dropped", By: "TestModel in internal/commit", Inside: "TestFailed/ext4",
			Breaks: "before the first change the root is sealed",
			Edits:  edits(root, "} else if rival, err = c.seal(k, is); err != nil {", "} else if err != nil {"),
		},
		{
			Name: "seal-unsynced", By: "TestOrderOfCalls in relabel",
			Breaks: "the seal comes to the disk before the first change",
			Edits:  edits(root, "return rival, c.pass(barriers[c.Walk.Order()].one)", "return rival, nil"),
		},
		{
			Name: "seal-blessed", By: "TestModel in internal/commit",
			Breaks: "a root that has what looks like a seal is sealed all the same",
			Edits:  edits(root, "if is && k.want == c.Want && k.seal == c.Found && secctx", "if secctx"),
		},
		{
			Name: "former-forgotten", By: "TestModel in internal/commit",
			Breaks: "the seal is none of the labels that the root had before runs that were interrupted",
			Edits:  edits(root, "secctx.Seals(has, c.Want, k.former...)", "secctx.Seals(has, c.Want)"),
		},
		{
			Name: "overtaken-unasked", By: "TestModel in internal/commit",
			Breaks: "the root is committed only if it still has what this run left on it",
			Edits:  edits(rival, "label == left.label", "label != \"\""),
		},
		{
			Name: "overtaken-trusted", By: "TestModel in internal/commit",
			Breaks: "a root that another took is not trusted for what this run has written",
			Edits:  edits(root, "\t\tc.reseal()\n\t}\n}", "\t}\n}"),
		},
		{
			Name: "way-not-given", By: "TestModel in internal/commit",
			Breaks: "a run waits until another, whose claim it replaced, has noticed",
			Edits:  edits(root, "case <-time.After(Noticed):", "default:"),
		},
		{
			Name: "waited-unlooked", By: "TestModel in internal/commit",
			Breaks: "of two runs that wait for each other the overtaken one leaves the root as it is",
			Edits:  edits(root, "return c.look()\n", "return nil\n"),
		},
		{
			Name: "healer-unseen", By: "TestModel in internal/commit",
			Breaks: "a run that healed a root that was right, and was overtaken, seals the root again",
			Edits:  edits(root, "(healed || !theirs)", "(healed && c.NoSeal || !theirs)"),
		},
		{
			Name: "seal-trusted", By: "TestModel in internal/commit",
			Breaks: "a root is trusted for nothing where the label that is asked for is its seal",
			Edits:  edits(claim, "e != 0 || claimed:", "e != 0 || claimed && fd < 0:"),
		},
		{
			Name: "hidden-trusted", By: "TestOrdinaryUser in relabel",
			Breaks: "a process that cannot see claims trusts no root",
			Edits:  edits(claim, "case !sys.HasTrusted():", "case fd < 0 && !sys.HasTrusted():"),
		},
		{
			Name: "unproved-trusted", By: "TestModel in internal/commit",
			Breaks: "a root that has the label is not trusted before the reading that follows has ended",
			Edits: edits(
				claim, "_, claimed, e := readClaim", "k, claimed, e := readClaim",
				claim, "e != 0 || claimed:", "e != 0 || claimed && k.seal == has:",
			),
		},
		{
			Name: "unproved-unsealed", By: "TestModel in internal/commit",
			Breaks: "a root whose label is not proved is sealed before anything beneath it is written",
			Edits:  edits(root, "is && k.want == c.Want; !is {", "is && k.want == c.Want; !is || k.seal != c.Found {"),
		},
		{
			Name: "unmounted-unsaid", By: "TestMountMoves in relabel",
			Breaks: "a mount that was unmounted during the run is no silence",
			Edits:  edits("internal/mounts/submount_linux.go", "case uncovered && beneath == \"\":", "case uncovered && beneath == \"\" && p == nil:"),
		},
		{
			Name: "commit-before-sync", By: "TestOrderOfCalls in relabel",
			Breaks: "everything comes to the disk before the root that is trusted for it",
			Edits: edits(
				root, "\tif c.Unsynced() || c.Sync {\n", "\tif false {\n",
				root, "\tc.Walk.Labelled(c, wrote)\n\tfor", "\tif err := c.order(); err != nil {\n\t\treturn err\n\t}\n\tc.Walk.Labelled(c, wrote)\n\tfor",
			),
		},
		{
			Name: "order-assumed", By: "TestOrderOf",
			Breaks: "where a filesystem keeps no order of labels, or is not known, the disk is waited for",
			Edits: edits(
				order, "\treturn Unordered\n}", "\treturn Ordered\n}",
				order, "\t\treturn Transactions\n", "\t\treturn Ordered\n",
			),
		},
		{
			Name: "sync-unasked", By: "TestOrderOfCalls in relabel",
			Breaks: "with Sync everything is on disk before the root's label",
			Edits:  edits(root, "\tif c.Sync {\n", "\tif false {\n"),
		},
		{
			Name: "layer-guessed", By: "TestOrderOfLayers in relabel",
			Breaks: "the order of overlayfs is that of its own upper layer",
			Edits:  edits("internal/mounts/submount_linux.go", "if e == 0 && !sys.SameSize(fd, m.At) {", "if e == 0 && !sys.SameSize(fd, fd) {"),
		},
		{
			Name: "look-late", By: "TestSlowLook in relabel",
			Breaks: "a run whose look at its root is late writes nothing until that has ended",
			Edits:  edits(rival, "since < 0 || since >= lease {", "since == 0 {"),
		},
		{
			Name: "commit-unread", By: "TestCreatedAtCommit in relabel",
			Breaks: "what came to the root since it was read has the label before the root",
			Edits:  edits(root, "if wrote && c.moved {", "if false {"),
		},
		{
			Name: "submount-unsynced", By: "TestSyncsForOthers",
			Breaks: "what was written on a mount beneath the root is on disk before the commit",
			Edits:  edits("relabel/submount_linux.go", "\t\tr.sync(m, m.Top)\n", ""),
		},
		{
			Name: "unsynced-trusted", By: "TestAnswers in relabel",
			Breaks: "a right root is not trusted for what is not on disk",
			Edits:  edits(root, "c.Revoke() // it is trusted", "_ = c // it is trusted"),
		},
		{
			Name: "commit-despite-failures", By: "TestModel in internal/commit",
			Breaks: "the root is committed only if nothing failed",
			Edits:  edits(root, "if err == nil && c.Walk.Failed() == nil {\n\t\tif c.DryRun", "if err == nil {\n\t\tif c.DryRun"),
		},
		{
			Name: "commit-fsync-dropped", By: "TestOrderOfCalls in relabel",
			Breaks: "with Sync, and where no order is kept, the root's label is on disk when the call returns",
			Edits:  edits(root, "if wrote && (c.Sync || c.Walk.Order() == Unordered) {", "if false {"),
		},
		{
			Name: "reread-dropped", By: "TestModel in internal/commit",
			Breaks: "the root's entries are read again after its label is written",
			Edits:  edits(root, "untouched := 1, c.untouched(); !", "untouched := 1, c.untouched(); false && !"),
		},
		{
			Name: "names-unlisted", By: "TestCreatedAtCommit in relabel",
			Breaks: "what comes to the root right before its label is found, whatever the root's times say",
			Edits:  edits(times, "c.listNames() == c.names", "c.names == c.names"),
		},
		{
			Name: "tick-ignored", By: "TestPassed in internal/commit",
			Breaks: "the root's times prove nothing in the tick in which they were set",
			Edits:  edits(times, "stamp.Before(t.clock)", "!stamp.After(t.clock)"),
		},
		{
			Name: "clock-trusted", By: "TestSetBack in internal/commit",
			Breaks: "the root's times prove nothing where the clock was set back",
			Edits:  edits(times, "return wall < elapsed-time.Second", "return wall < 0"),
		},
		{
			Name: "revoke-dropped", By: "TestFailureSeals in relabel",
			Breaks: "a root that was right is sealed when something beneath it failed",
			Edits:  edits(root, "if c.Revoke(); err == nil {", "if err == nil {"),
		},
		{
			Name: "revoke-at-cancel-dropped", By: "TestCancelAtCommit in relabel",
			Breaks: "a committed root is sealed again if the second reading did not end",
			Edits:  edits(root, "c.Revoke() // what was created", "_ = c // what was created"),
		},
		{
			Name: "retreat-dropped", By: "TestBesideHangs",
			Breaks: "a committed root is sealed again if the second reading hangs",
			Edits:  edits("internal/run/run.go", "go (*revoke)()", "_ = revoke"),
		},
		{
			Name: "revoke-late", By: "TestModel in internal/commit",
			Breaks: "a root that is closed, or a directory that has its descriptor by then, gets no seal",
			Edits:  edits(root, "\tdefer c.end()\n", "\t_ = c.end\n"),
		},
		{
			Name: "excluded-root", By: "TestExcludedRoot in relabel",
			Breaks: "an exclusion that is the root, or holds it, is an error",
			Edits:  edits("internal/mounts/bounds_linux.go", "if len(b.Excluded) == 0 {", "if b.Excluded != nil {"),
		},
		{
			Name: "rules-trusted", By: "TestApplyTrust in relabel",
			Breaks: "a root beneath which rules have written is trusted for no label",
			Edits:  edits("relabel/apply_linux.go", "d.first, e = commit.ClaimRules(m.Top, r.order(m, m.Top))", "d.first, e = false, sys.Errno(0)"),
		},
		{
			Name: "rules-overtaken", By: "TestApplyOvertaken in relabel",
			Breaks: "no label is trusted that was committed while rules were at work",
			Edits:  edits("relabel/apply_linux.go", "_, e = commit.ClaimRules(fd, r.order(m, fd))", "_ = fd"),
		},
		{
			Name: "lock-skipped", By: "TestTrustedAfterWait",
			Breaks: "one relabel of a volume runs at a time",
			Edits:  edits("relabel/tree_linux.go", "if r.inner.dry || r.root.Stat.Kind != sys.KindDir {", "if r.inner.dry || r.root.At >= 0 {"),
		},
		{
			Name: "lock-unlocked", By: "TestLockOfOthers in internal/commit",
			Breaks: "a volume's lock excludes the runs of other processes",
			Edits:  edits("internal/commit/lock_linux.go", "e := sys.TryLock(fd, at); e != 0 {", "e := sys.TryLock(fd, at); e != 0 && e != syscall.EAGAIN {"),
		},
		{
			Name: "turn-lost", By: "TestQueueQuits",
			Breaks: "who gives up leaves the line, and lets the next one have the turn that has come",
			Edits:  edits("internal/commit/lock_linux.go", "if !taken { // also if wait panics", "if !taken && ctx.Err() == nil {"),
		},
		{
			Name: "lock-not-reprobed", By: "TestTrustedAfterWait",
			Breaks: "a run that has waited for the lock looks again whether the work is done",
			Edits:  edits("relabel/tree_linux.go", "done || err != nil { // the run", "done && err != nil { // the run"),
		},
	}
}
