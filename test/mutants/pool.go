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
		mutant("push-wakes-before-append", "TestHandoff", "1: an item is visible before a worker is looked for",
			worker, "push(item)\n\tpause()\n", "w.pool.lot.wake()\n\tpause()\n\tpush(item)\n\treturn\n"),
		mutant("idle-not-announced", "TestHandoff", "1: a worker announces that it is idle, then looks a last time",
			worker, "for lot.announce(w.seat) {\n", "for {\n",
			worker, "\t\t\tlot.withdraw(w.seat)\n", "",
			worker, "<-w.seat", "if !lot.announce(w.seat) {\n\t\t\treturn item, false\n\t\t}\n\t\tpause()\n\t\t<-w.seat",
			worker, "\t\t<-w.seat\n\t}\n\treturn item, false\n", "\t\t<-w.seat\n\t}\n"),
		mutant("token-left-behind", "TestHandoff", "a worker that withdraws takes the token that it is owed",
			lot, "if at < 0 {\n\t\t<-s\n\t}", ""),
		mutant("wake-not-passed-on", "TestHandoff", "2: a wake that was meant for another item is passed on",
			worker, "\t\t\tw.pool.passOn()\n", ""),
		mutant("pending-raised-late", "TestStaysOpen", "3: an item is counted before a thief can finish it",
			worker, "w.pool.pending.Add(1) // before", "// before",
			worker, "w.pool.lot.wake() // after it can be seen", "w.pool.lot.wake()\n\tpause()\n\tw.pool.pending.Add(1)"),
		mutant("pending-lowered-early", "TestStaysOpen", "3: an item that is worked on is pending",
			worker, "do(item)\n\t\t\t\tp.finish()", "p.finish()\n\t\t\t\tdo(item)"),
		mutant("begin-not-pending", "TestBeginPushes", "3: a worker that begins is pending",
			worker, "do, end, err := p.begin(w)\n", "p.finish()\n\t\tdo, end, err := p.begin(w)\n",
			worker, "p.finish() // what was counted", "// what was counted"),
		mutant("sleeps-after-broadcast", "TestRendezvous", "4: a worker that announces after the lot was closed does not sleep",
			lot, "\tif l.closed {\n", "\tif l.closed && cap(s) == 0 {\n"),
		mutant("stop-without-broadcast", "TestCancelParked", "4: sleepers are woken by a stop",
			run, "\tpause()\n\tp.lot.close()\n", "\tpause()\n"),
		mutant("stop-flag-not-set", "TestStopsAtOnce", "4: a worker looks at the stop before each item",
			run, "\tp.stopped.Store(true)\n", ""),
		mutant("drained-before-gone", "TestCancelBusy", "5: the deques are drained when all workers are gone",
			run, "gone < p.alive.Load(); {", "gone < p.alive.Load()-1; {"),
		mutant("leaves-with-item", "TestDismiss", "6: a worker leaves between two items",
			worker, "!p.stopped.Load() && !w.tooMany() {", "!p.stopped.Load() {",
			worker, "item, ok := w.next()\n", "item, ok := w.next()\n\t\t\t\tif w.tooMany() {\n\t\t\t\t\treturn\n\t\t\t\t}\n"),
		mutant("added-not-waited-for", "TestHeldUp", "Run waits for a worker that was added",
			run, "for gone := int32(0); gone < p.alive.Load(); {", "for gone, all := int32(0), p.alive.Load(); gone < all; {"),
	}
}
