// SPDX-License-Identifier: Apache-2.0

package mutants

// commits break what makes the root's label true: the seal comes first, the label
// last, and each is on disk before what relies on it.
func commits() []Mutant {
	const record = "relabel/record_linux.go"
	const claim = "relabel/claim_linux.go"
	return []Mutant{
		{
			Name: "seal-dropped", By: "TestBackToTheOldLabel", Inside: "TestFailed/ext4",
			Breaks: "before the first change the root is sealed",
			Edits:  edits(record, "c.sealed = c.isSealed()", "c.sealed = true"),
		},
		{
			Name: "seal-unsynced", By: "TestOrderOfCalls",
			Breaks: "the seal is on disk before the first change",
			Edits:  edits(record, "return true, c.sync(\"fsync\", sys.Fsync)", "return true, nil"),
		},
		{
			Name: "seal-blessed", By: "TestSealHolds",
			Breaks: "a root that has what looks like a seal is sealed all the same",
			Edits:  edits(record, "c.sealed = c.isSealed()", "c.sealed = c.isSealed() || secctx.IsSeal(c.have, c.want)"),
		},
		{
			Name: "former-forgotten", By: "TestSealEach",
			Breaks: "the seal is none of the labels that the root had before runs that were interrupted",
			Edits:  edits(claim, "secctx.Seals(c.have, c.want, k.former...)", "secctx.Seals(c.have, c.want)"),
		},
		{
			Name: "overtaken-unasked", By: "TestOvertaken",
			Breaks: "the root is committed only if it still has what this run left on it",
			Edits:  edits(claim, "label == *c.left.Load()", "label != \"\""),
		},
		{
			Name: "overtaken-vouches", By: "TestOvertaken",
			Breaks: "a root that another took does not vouch for what this run has written",
			Edits:  edits(claim, "c.reseal()", "_ = c"),
		},
		{
			Name: "way-not-given", By: "TestGiveWay",
			Breaks: "a run waits until another, whose claim it replaced, has noticed",
			Edits:  edits(claim, "case <-time.After(noticed):", "default:"),
		},
		{
			Name: "healer-unseen", By: "TestShared",
			Breaks: "a run waits until another, which heals a root that was right, has noticed",
			Edits:  edits(claim, "return e == errWouldBlock", "return e == errNotDir"),
		},
		{
			Name: "seal-trusted", By: "TestSealWanted",
			Breaks: "a root vouches for nothing where the label that is asked for is its seal",
			Edits:  edits("relabel/labelled_linux.go", "is && k.seal == have", "is && k.seal == \"\""),
		},
		{
			Name: "mark-copied", By: "TestMarkCopied",
			Breaks: "a mark holds for the directory it was left on",
			Edits:  edits("relabel/proof_linux.go", " && k.root == root", ""),
		},
		{
			Name: "unmounted-unsaid", By: "TestMountMoves",
			Breaks: "a mount that was unmounted during the run is no silence",
			Edits:  edits("relabel/submount_linux.go", "if e != 0 || r.leaves(info, root, passed) {", "if r.leaves(info, root, passed) || root != nil {"),
		},
		{
			Name: "commit-before-sync", By: "TestOrderOfCalls",
			Breaks: "everything is on disk before the root vouches for it",
			Edits: edits(
				record, "\tif c.unsynced() {\n", "\tif false {\n",
				record, "return c.reread(ctx)", "if err := c.sync(\"syncfs\", sys.Syncfs); err != nil {\n\t\treturn err\n\t}\n\treturn c.reread(ctx)",
			),
		},
		{
			Name: "sync-dropped", By: "TestPowerLoss in test/torture",
			Breaks: "everything is on disk before the root vouches for it",
			Edits:  edits(record, "\tif c.unsynced() {\n", "\tif false {\n"),
		},
		{
			Name: "submount-unsynced", By: "TestSyncsForOthers",
			Breaks: "what was written on a mount beneath the root is on disk before the commit",
			Edits:  edits("relabel/submount_linux.go", "e := sys.Syncfs(int(m.top.fd))", "e := sys.Errno(0)"),
		},
		{
			Name: "unsynced-vouches", By: "TestUnsyncedStray",
			Breaks: "a right root does not vouch for what is not on disk",
			Edits:  edits(record, "c.committed = c.right() //", "_ = c.right() //"),
		},
		{
			Name: "commit-despite-failures", By: "TestGuessRefused",
			Breaks: "the root is committed only if nothing failed",
			Edits:  edits(record, "if err == nil && len(c.first) == 0 && c.counted(failure) == 0 {", "if err == nil {"),
		},
		{
			Name: "commit-fsync-dropped", By: "TestOrderOfCalls",
			Breaks: "the root's label is on disk when the call returns",
			Edits:  edits(record, "if err := c.sync(\"fsync\", sys.Fsync); err != nil {", "if err := error(nil); err != nil {"),
		},
		{
			Name: "reread-dropped", By: "TestCreatedAndBackdated",
			Breaks: "the root's entries are read again after its label is written",
			Edits:  edits(record, "return c.reread(ctx)", "return nil"),
		},
		{
			Name: "revoke-dropped", By: "TestFailureSeals",
			Breaks: "a root that was right is sealed when something beneath it failed",
			Edits:  edits(record, "if c.revoke(); err == nil {", "if err == nil {"),
		},
		{
			Name: "revoke-at-cancel-dropped", By: "TestCancelAtCommit",
			Breaks: "a committed root is sealed again if the second reading did not end",
			Edits:  edits(record, "c.revoke() // what was created", "_ = c // what was created"),
		},
		{
			Name: "retreat-dropped", By: "TestHungSecondReading",
			Breaks: "a committed root is sealed again if the second reading hangs",
			Edits:  edits("relabel/stall_linux.go", "go (*revoke)()", "_ = revoke"),
		},
		{
			Name: "excluded-root", By: "TestExcludedRoot",
			Breaks: "an exclusion that is the root, or holds it, is an error",
			Edits:  edits("relabel/tree_linux.go", "if len(r.exclude) == 0 {", "if r.exclude != nil {"),
		},
		{
			Name: "mark-left-on", By: "TestSkipUnchangedWithout",
			Breaks: "a run to another label, or a failure, takes the mark off first",
			Edits:  edits("relabel/proof_linux.go", "switch e := sys.NewAttr(markName, nil).Fremovexattr(c.fd); e {", "switch e := sys.Errno(0); e {"),
		},
		{
			Name: "mark-read-late", By: "TestStateLastRun",
			Breaks: "the mark is read before it is taken off",
			Edits: edits(
				"relabel/tree_linux.go", "\trecord.readMark()\n", "",
				"relabel/tree_linux.go", "if err := record.giveWay(ctx); err != nil {", "record.readMark()\n\tif err := record.giveWay(ctx); err != nil {",
			),
		},
		{
			Name: "lock-skipped", By: "TestTrustedAfterWait",
			Breaks: "one relabel of a volume runs at a time",
			Edits:  edits("relabel/tree_linux.go", "\tif r.o.DryRun || root.Stat.Kind != sys.KindDir {\n\t\treturn nil, nil", "\tif r.o.DryRun || r.locks.Err == nil {\n\t\treturn nil, nil"),
		},
		{
			Name: "lock-not-reprobed", By: "TestTrustedAfterWait",
			Breaks: "a run that has waited for the lock looks again whether the work is done",
			Edits:  edits("relabel/tree_linux.go", "if done, err := r.trusted(root); done || err != nil {\n\t\treturn err\n\t}\n\tif ctx.Err()", "if ctx.Err()"),
		},
	}
}
