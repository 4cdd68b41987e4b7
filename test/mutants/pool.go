// SPDX-License-Identifier: Apache-2.0

package mutants

// pool breaks the orderings that internal/steal/pool.go lists, by number.
// Its tests run under the race detector, whose build pauses at random where order
// matters.
func pool() []Mutant {
	const (
		dir    = "internal/steal/"
		run    = dir + "pool.go"
		worker = dir + "worker.go"
		lot    = dir + "lot.go"
	)
	return []Mutant{
		{
			Name: "push-wakes-before-append", By: "TestHandoff",
			Breaks: "1: an item is visible before a worker is looked for",
			Edits:  edits(worker, "push(item)\n\tpause()\n", "w.pool.lot.wake()\n\tpause()\n\tpush(item)\n\treturn\n"),
		},
		{
			Name: "idle-not-announced", By: "TestHandoff",
			Breaks: "1: a worker announces that it is idle, then looks a last time",
			Edits: edits(
				worker, "for lot.announce(w.seat) {\n", "for {\n",
				worker, "\t\t\tlot.withdraw(w.seat)\n", "",
				worker, "<-w.seat", "if !lot.announce(w.seat) {\n\t\t\treturn item, false\n\t\t}\n\t\tpause()\n\t\t<-w.seat",
				worker, "\t\t<-w.seat\n\t}\n\treturn item, false\n", "\t\t<-w.seat\n\t}\n",
			),
		},
		{
			Name: "token-left-behind", By: "TestHandoff",
			Breaks: "a worker that withdraws takes the token that it is owed",
			Edits:  edits(lot, "if at < 0 {\n\t\t<-s\n\t}", ""),
		},
		{
			Name: "wake-not-passed-on", By: "TestHandoff",
			Breaks: "2: a wake that was meant for another item is passed on",
			Edits:  edits(worker, "\t\t\tw.pool.passOn()\n", ""),
		},
		{
			Name: "pending-raised-late", By: "TestStaysOpen",
			Breaks: "3: an item is counted before a thief can finish it",
			Edits: edits(
				worker, "w.pool.pending.Add(1) // before", "// before",
				worker, "w.pool.lot.wake() // after it can be seen", "w.pool.lot.wake()\n\tpause()\n\tw.pool.pending.Add(1)",
			),
		},
		{
			Name: "pending-lowered-early", By: "TestStaysOpen",
			Breaks: "3: an item that is worked on is pending",
			Edits:  edits(worker, "do(item)\n\t\t\t\tp.finish()", "p.finish()\n\t\t\t\tdo(item)"),
		},
		{
			Name: "begin-not-pending", By: "TestBeginPushes",
			Breaks: "3: a worker that begins is pending",
			Edits: edits(
				worker, "do, end, err := p.begin(w)\n", "p.finish()\n\t\tdo, end, err := p.begin(w)\n",
				worker, "p.finish() // what was counted", "// what was counted",
			),
		},
		{
			Name: "sleeps-after-broadcast", By: "TestRendezvous",
			Breaks: "4: a worker that announces after the lot was closed does not sleep",
			Edits:  edits(lot, "\tif l.closed {\n", "\tif l.closed && cap(s) == 0 {\n"),
		},
		{
			Name: "stop-without-broadcast", By: "TestCancelParked",
			Breaks: "4: sleepers are woken by a stop",
			Edits:  edits(run, "\tpause()\n\tp.lot.close()\n", "\tpause()\n"),
		},
		{
			Name: "stop-flag-not-set", By: "TestStopsAtOnce",
			Breaks: "4: a worker looks at the stop before each item",
			Edits:  edits(run, "\tp.stopped.Store(true)\n", ""),
		},
		{
			Name: "drained-before-gone", By: "TestCancelBusy",
			Breaks: "5: the deques are drained when all workers are gone",
			Edits:  edits(run, "gone < p.alive.Load(); {", "gone < p.alive.Load()-1; {"),
		},
		{
			Name: "leaves-with-item", By: "TestDismiss",
			Breaks: "6: a worker leaves between two items",
			Edits: edits(
				worker, "!p.stopped.Load() && !w.tooMany() {", "!p.stopped.Load() {",
				worker, "item, ok := w.next()\n", "item, ok := w.next()\n\t\t\t\tif w.tooMany() {\n\t\t\t\t\treturn\n\t\t\t\t}\n",
			),
		},
		{
			Name: "added-not-waited-for", By: "TestHeldUp",
			Breaks: "Run waits for a worker that was added",
			Edits:  edits(run, "for gone := int32(0); gone < p.alive.Load(); {", "for gone, all := int32(0), p.alive.Load(); gone < all; {"),
		},
	}
}
