// SPDX-License-Identifier: Apache-2.0

package mutants

// undo breaks the record of what was there before, and Restore.
func undo() []Mutant {
	const (
		former  = "relabel/internal/walk/former_linux.go"
		restore = "relabel/internal/journal/restore_linux.go"
		journal = "relabel/internal/journal/tree_linux.go"
		writer  = "cmd/fastlabel/internal/undofile/writer.go"
		reader  = "cmd/fastlabel/internal/undofile/reader.go"
	)
	return []Mutant{
		{
			Name: "record-late", By: "TestRecorderFails in relabel",
			Breaks: "the label that an entry had is on record before it is written",
			Edits: edits(
				former, "w.now(xattrio.Fdatasync)\n", "for _, p := range pages {\n\t\tw.write(p)\n\t}\n\tpages = nil\n\tw.now(xattrio.Fdatasync)\n",
			),
		},
		{
			Name: "record-error-dropped", By: "TestRecorderFails in relabel",
			Breaks: "a record that cannot be kept ends the run",
			Edits:  edits(former, "if err != nil { // what is not kept", "if err != nil && false { // what is not kept"),
		},
		{
			Name: "record-unsynced", By: "TestUndoPowerLoss in test/torture",
			Breaks: "the label that an entry had is on disk before it is written",
			Edits: edits(
				writer, "return datasync(w.f)", "return nil",
				writer, "err = w.f.Sync()", "_ = w.f.Sync",
			),
		},
		{
			Name: "record-kinds", By: "TestApplyUndo in relabel",
			Breaks: "by rules what was recorded gets the label for its kind of file",
			Edits:  edits(former, "w.add(d, e.Ino, e.Kind,", "w.add(d, e.Ino, sys.KindFile,"),
		},
		{
			Name: "restore-given", By: "TestApplyUndoLeavesAlone in relabel",
			Breaks: "what has another label than rules gave it is left alone",
			Edits:  edits(journal, "cmp.Or(f.Given, t.label)", "cmp.Or(t.label, has.String())"),
		},
		{
			Name: "restore-anywhere", By: "TestRestoreElsewhere in relabel",
			Breaks: "the root is the one that was labelled",
			Edits:  edits(restore, "return kind == h.Filesystem && m.Stat.Ino == h.Ino && born", "return kind != 0 || born"),
		},
		{
			Name: "restore-one-of-two", By: "TestRestoreOneOfTwo in cmd/fastlabel",
			Breaks: "a root does not vouch for what another run labelled, of which there is another record",
			Edits:  edits(reader, "r.Head.Partial = !e.Complete", "r.Head.Partial = false"),
		},
		{
			Name: "restore-other-file", By: "TestRestoreLeavesAlone in relabel",
			Breaks: "another file of the same name is left alone",
			Edits:  edits(journal, "if f.Ino != 0 && f.Ino != r.Stat.Ino {", "if false {"),
		},
		{
			Name: "restore-overwrites", By: "TestRestoreLeavesAlone in relabel",
			Breaks: "what was changed after the run is left alone",
			Edits:  edits(journal, "case !has.Is(cmp.Or(f.Given, t.label)):", "case cmp.Or(f.Given, \"x\") == \"\":"),
		},
		{
			Name: "restore-unsealed", By: "TestRestoreSeals in relabel",
			Breaks: "the root is sealed before labels beneath it are put back",
			Edits:  edits("relabel/internal/commit/undo_linux.go", "if c.NoSeal {", "if c.Want != \"\" {"),
		},
		{
			Name: "restore-vouches", By: "TestRestoreLeavesAlone in relabel",
			Breaks: "a restored root does not vouch for what was left alone",
			Edits:  edits(restore, "(undone || r.Stirred() || r.became[Left].Load() > 0)", "undone"),
		},
		{
			Name: "restore-claim-dropped", By: "TestRestoreDisavowed in relabel",
			Breaks: "a root that vouched for nothing before the run does not vouch when it is taken back",
			Edits:  edits(restore, "if !r.Header.Claimed {\n", "if c != nil {\n"),
		},
		{
			Name: "restore-root-once", By: "TestRestoreCreated in relabel",
			Breaks: "what is created in the root until it has its former label is noticed",
			Edits:  edits(restore, "if r.withhold(was) { // something was created there until it had the label", "if false {"),
		},
		{
			Name: "restore-looked-before", By: "TestRestoreCreated in relabel",
			Breaks: "what is created in a directory until it has its former label is noticed",
			Edits:  edits(journal, "if e == 0 && r.Stat.Kind == sys.KindDir {", "if false {"),
		},
	}
}
