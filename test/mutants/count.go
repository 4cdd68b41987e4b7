// SPDX-License-Identifier: Apache-2.0

package mutants

// counts break the walk's own promises: a directory before what is in it, each
// entry once, each counted once, and a call that hangs holds nothing else.
func counts() []Mutant {
	const (
		enter = "internal/walk/enter_linux.go"
		walk  = "internal/walk/worker_linux.go"
		label = "internal/walk/label_linux.go"
		row   = "internal/sys/row_linux.go"
		visit = "internal/sys/visit_linux.go"
	)
	return []Mutant{
		{
			Name: "unsupported-once", By: "TestErrnoTable in relabel",
			Breaks: "an entry is skipped if reading and writing its label are not supported, and not one of them",
			Edits:  edits("internal/xattrio/io_linux.go", "return e == syscall.ENOTSUP", "return true"),
		},
		{
			Name: "stale-row", By: "TestStale in relabel",
			Breaks: "of NFS the server is asked before a label is read",
			Edits:  edits("internal/walk/row_linux.go", " && !m.Stale", ""),
		},
		{
			Name: "stale-entry", By: "TestStale in relabel",
			Breaks: "of NFS the server is asked before a label is read, in whichever way",
			Edits:  edits("internal/xattrio/io_linux.go", "if x.Stale {", "if x.Stale && t.Name == nil {"),
		},
		{
			Name: "reading-moves", By: "TestReadingMoves in internal/walk",
			Breaks: "a worker that reads a large directory is not taken for held up",
			Edits:  edits("internal/walk/worker_linux.go", "\t\t\tw.pos.moves.Add(1)\n\t\t\treturn got", "\t\t\treturn got"),
		},
		{
			Name: "served-few", By: "TestWaitTogether in internal/walk",
			Breaks: "where calls wait for a server, as many wait at once as pay",
			Edits:  edits("internal/walk/walk_linux.go", "max(workers, waiting), mostWaiting", "max(workers, waiting), waiting"),
		},
		{
			Name: "served-many", By: "TestTuneServed in internal/walk",
			Breaks: "more workers stay only if they get on faster",
			Edits:  edits("internal/walk/tune_linux.go", "if gain < t.measure.worthwhile {", "if gain < 0.5 {"),
		},
		{
			Name: "trial-kept", By: "TestTuneServed in internal/walk",
			Breaks: "a run gives back the workers that it tried when another begins",
			Edits:  edits("internal/walk/tune_linux.go", "t.most = f.most; t.workers > t.most", "false"),
		},
		{
			Name: "trial-greedy", By: "TestMore in internal/budget",
			Breaks: "a run that tries more workers leaves some to one that comes",
			Edits:  edits("internal/budget/budget.go", "if trial {", "if false {"),
		},
		{
			Name: "begins-reading", By: "TestBeginUnread in internal/walk",
			Breaks: "a worker that begins late knows what labels were met",
			Edits:  edits("internal/walk/walk_linux.go", "if k.wrong.Load() {", "if false {"),
		},
		{
			Name: "tune-cold", By: "TestTuneCold in internal/walk",
			Breaks: "whether disks are read is told beside a worker that is held up",
			Edits:  edits("internal/walk/tune_linux.go", "if !reads {", "if !reads && f.steady {"),
		},
		{
			Name: "label-after-read", By: "TestDirectoriesFirst in relabel",
			Breaks: "directories are labelled before they are read",
			Edits: edits(
				enter, "if plain && ", "if plain && false && ",
				enter, "\t\tl.countDir(d, l.label(xattrio.Target{FD: fd}, d))\n\t}\n\tif !d.frozen {", "\t\tw.scan(d, fd)\n\t\tl.countDir(d, l.label(xattrio.Target{FD: fd}, d))\n\t}\n\tif false {",
			),
		},
		{
			Name: "visit-reads-first", By: "TestVisitOrder in relabel",
			Breaks: "directories are labelled before they are read, in one go too",
			Edits: edits(
				visit, "\t\tv.FD = int(fd)\n", `		v.FD = int(fd)
		early, _ := retried(unix.SYS_GETDENTS64, fd, records, uintptr(len(buf)), 0, 0, 0)
		v.N = int(early)
`,
			),
		},
		{
			Name: "rest-lost", By: "TestEveryWay/wide/ext4/clone-fchdir-1 in relabel",
			Breaks: "a directory is read to its end",
			Edits: edits(
				enter, "n, more := v.N, !v.End", "n, more := v.N, v.N < 0 && !v.End",
				walk, "\t\t\treturn n, more\n\t\t}\n\t}\n\treturn n, true", "\t\t\treturn n, more\n\t\t}\n\t}\n\treturn n, false",
			),
		},
		{
			Name: "skip-links", By: "TestEveryWay/mixed-kinds/ext4/clone-fchdir-1 in relabel",
			Breaks: "links are labelled",
			Edits: edits(
				walk, "\t\tl.count(d, l.label(t, d), 1)\n", "\t\to := Right\n\t\tif e.Kind != sys.KindLink {\n\t\t\to = l.label(t, d)\n\t\t}\n\t\tl.count(d, o, 1)\n",
				"internal/walk/row_linux.go", "return e.Kind != sys.KindDir &&", "return e.Kind != sys.KindLink && e.Kind != sys.KindDir &&",
			),
		},
		{
			Name: "reread-counts-twice", By: "TestFailureSeals in relabel",
			Breaks: "each entry counts once, also when the root is read again",
			Edits:  edits(label, "!d.rereading || o == Written", "!d.rereading || o == Right || o == Written"),
		},
		{
			Name: "encrypted-vanishes", By: "TestEncrypted in relabel",
			Breaks: "a name that is gone in an encrypted directory is a failure",
			Edits:  edits("internal/xattrio/verdict_linux.go", "unread == 0 && st.Encrypted", "unread == 0 && st.Encrypted && false"),
		},
		{
			Name: "vanished-twice", By: "TestVanishDeep in relabel",
			Breaks: "what vanished counts once",
			Edits:  edits(enter, "\t\t\treturn -1, Vanished\n", "\t\t\tl.tally.Count(Vanished, 1)\n\t\t\treturn -1, Vanished\n"),
		},
		{
			Name: "row-holds-scheduler", By: "TestRowLetsGo",
			Breaks: "a call that hangs keeps no processor",
			Edits: edits(
				row, "\td.Turn = o.Turn\n\tenter()\n", "\td.Turn = o.Turn\n",
				row, "\t\td.Written++\n\t}\n\texit()\n", "\t\td.Written++\n\t}\n",
				visit, "\tenter()\n", "",
				visit, "\texit()\n", "",
			),
		},
		{
			Name: "visit-left-open", By: "TestLeaks in relabel",
			Breaks: "whatever way a run ends, what it opened is closed",
			Edits:  edits(walk, "\tw.parent.release(w.cache)\n\tw.closeVisited()\n\tw.buf", "\tw.parent.release(w.cache)\n\tw.buf"),
		},
	}
}
