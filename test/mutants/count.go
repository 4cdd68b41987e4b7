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
		mutant("unsupported-once", "TestErrnoTable in relabel", "an entry is skipped if reading and writing its label are not supported, and not one of them",
			"internal/walk/label_linux.go", "return e == syscall.ENOTSUP", "return true"),
		mutant("stale-row", "TestStale in relabel", "of NFS the server is asked before a label is read",
			"internal/walk/row_linux.go", " && !m.Stale", ""),
		mutant("stale-entry", "TestStale in relabel", "of NFS the server is asked before a label is read, in whichever way",
			"internal/xattrio/io_linux.go", "if x.Stale {", "if x.Stale && t.Name == nil {"),
		mutant("reading-moves", "TestReadingMoves in internal/walk", "a worker that reads a large directory is not taken for held up",
			"internal/walk/worker_linux.go", "\t\t\tw.pos.moves.Add(1)\n\t\t\treturn got", "\t\t\treturn got"),
		mutant("failed-unseen", "TestFailDir in internal/walk", "what the second reading of the root did not count is not taken back",
			label, "l.count(d.parent, d.outcome, -1)", "l.tally.Count(d.outcome, -1)"),
		mutant("served-few", "TestWaitTogether in internal/walk", "where calls wait for a server, as many wait at once as pay",
			"internal/walk/walk_linux.go", "max(workers, waiting), mostWaiting", "max(workers, waiting), waiting"),
		mutant("served-many", "TestTuneServed in internal/walk", "more workers stay only if they get on faster",
			"internal/walk/tune_linux.go", "if gain < t.measure.worthwhile {", "if gain < 0.5 {"),
		mutant("trial-kept", "TestTuneServed in internal/walk", "a run gives back the workers that it tried when another begins",
			"internal/walk/tune_linux.go", "t.most = f.most; t.workers > t.most", "false"),
		mutant("trial-greedy", "TestMore in internal/budget", "a run that tries more workers leaves some to one that comes",
			"internal/budget/budget.go", "if trial {", "if false {"),
		mutant("begins-reading", "TestBeginUnread in internal/walk", "a worker that begins late knows what labels were met",
			"internal/walk/walk_linux.go", "if k.wrong.Load() {", "if false {"),
		mutant("tune-cold", "TestTuneCold in internal/walk", "whether disks are read is told beside a worker that is held up",
			"internal/walk/tune_linux.go", "if !reads {", "if !reads && f.steady {"),
		mutant("label-after-read", "TestDirectoriesFirst in relabel", "directories are labelled before they are read",
			enter, "if plain && ", "if plain && false && ",
			enter, "\t\tl.countDir(d, l.label(xattrio.Target{FD: fd}, d))\n\t}\n\tif !d.frozen {", "\t\tw.scan(d, fd)\n\t\tl.countDir(d, l.label(xattrio.Target{FD: fd}, d))\n\t}\n\tif false {"),
		mutant("visit-reads-first", "TestVisitOrder in relabel", "directories are labelled before they are read, in one go too",
			visit, "\t\tv.FD = int(fd)\n", `		v.FD = int(fd)
		early, _ := retried(unix.SYS_GETDENTS64, fd, records, uintptr(len(buf)), 0, 0, 0)
		v.N = int(early)
`),
		mutant("rest-lost", "TestEveryWay/wide/ext4/clone-fchdir-1 in relabel", "a directory is read to its end",
			enter, "n, more := v.N, !v.End", "n, more := v.N, v.N < 0 && !v.End",
			walk, "\t\t\treturn n, more\n\t\t}\n\t}\n\treturn n, true", "\t\t\treturn n, more\n\t\t}\n\t}\n\treturn n, false"),
		mutant("skip-links", "TestEveryWay/mixed-kinds/ext4/clone-fchdir-1 in relabel", "links are labelled",
			walk, "\t\tl.count(d, l.label(t, d), 1)\n", "\t\to := Right\n\t\tif e.Kind != sys.KindLink {\n\t\t\to = l.label(t, d)\n\t\t}\n\t\tl.count(d, o, 1)\n",
			"internal/walk/row_linux.go", "return e.Kind != sys.KindDir &&", "return e.Kind != sys.KindLink && e.Kind != sys.KindDir &&"),
		mutant("reread-counts-twice", "TestFailureSeals in relabel", "each entry counts once, also when the root is read again",
			label, "!d.rereading || o == Written", "!d.rereading || o == Right || o == Written"),
		mutant("encrypted-vanishes", "TestEncrypted in relabel", "a name that is gone in an encrypted directory is a failure",
			"internal/xattrio/verdict_linux.go", "unread == 0 && st.Encrypted", "unread == 0 && st.Encrypted && false"),
		mutant("vanished-twice", "TestVanishDeep in relabel", "what vanished counts once",
			enter, "\t\t\treturn -1, Vanished\n", "\t\t\tl.tally.Count(Vanished, 1)\n\t\t\treturn -1, Vanished\n"),
		mutant("row-holds-scheduler", "TestRowLetsGo", "a call that hangs keeps no processor",
			row, "\td.Turn = o.Turn\n\tenter()\n", "\td.Turn = o.Turn\n",
			row, "\t\td.Written++\n\t}\n\texit()\n", "\t\td.Written++\n\t}\n",
			visit, "\tenter()\n", "",
			visit, "\texit()\n", ""),
		mutant("visit-left-open", "TestLeaks in relabel", "whatever way a run ends, what it opened is closed",
			walk, "\tw.parent.release(w.cache)\n\tw.closeVisited()\n\tw.buf", "\tw.parent.release(w.cache)\n\tw.buf"),
	}
}
