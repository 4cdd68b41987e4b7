// SPDX-License-Identifier: Apache-2.0

package mutants

// callers break what Group, the budget of all runs, the hook and the command decide
// about what is asked of them.
func callers() []Mutant {
	const (
		flight = "internal/flight/flight.go"
		budget = "internal/budget/budget.go"
		hook   = "cmd/fastlabel/hook.go"
		volume = "cmd/fastlabel/internal/oci/oci.go"
	)
	return []Mutant{
		mutant("group-joins-what-stops", "TestGroupJoinsNoneThatStops", "a caller does not join work that is being stopped",
			flight, "w.Key != key || w.ctx.Err() != nil {", "w.Key != key {"),
		mutant("group-late-timer", "TestGroupLinger", "an absence does not end with the time of the one before",
			flight, "w.absence == absence {", "w.absence >= absence {"),
		mutant("group-two-runs", "TestGroupOtherLabel", "only the first of a queue runs",
			flight, "if i < 0 || g.underWay(id) != nil {", "if i < 0 {"),
		mutant("group-forgets-success", "TestGroupFresh", "after a success that nobody was told of, the next run trusts the root",
			flight, "\t\t\tagain = true\n", ""),
		mutant("group-runs-abandoned", "TestGroupLeftInQueue", "what nobody waits for does not begin",
			flight, "w.state == queued && w.callers > 0", "w.state == queued"),
		mutant("group-run-elsewhere", "TestGroupMoved", "the root that a run opens is the one that was looked at",
			"relabel/open_linux.go", "at != *want && at.ByAnyMount() != *want {", "at == (mounts.Volume{}) {"),
		mutant("group-stop-leaves-open", "TestGroupStopHeld", "when Stop returns nothing is open any more",
			flight, "if !await(ctx, w.released) {", "if false {"),
		mutant("group-stop-overlooks", "TestGroupStopArrival", "a caller who arrived before Stop is stopped, too",
			flight, "if mine.Err() != nil && ctx.Err() == nil {", "if false {"),
		mutant("probes-hang-on", "TestProbeManyPaths", "calls without a context do not all hang on one volume",
			"internal/run/probes.go", "n >= probesHung {", "n < 0 {"),
		mutant("budget-hung-works", "TestBudgetHung", "a worker whose call hangs keeps no run from beginning",
			budget, "(workers - hung) - (s.workers - s.hung)", "workers - s.workers"),
		mutant("budget-overtaken", "TestBudget", "while a run waits for its share, the others take nothing more",
			budget, "if len(b.queue) > 0 || s.idle ||", "if s.idle ||"),
		mutant("hook-floods", "TestHookFlood", "what a pod's author writes floods no log",
			hook, "case l.lines >= most && !last:", "case l.lines >= 1<<20*most && !last:"),
		mutant("paths-not-looked-up", "TestMistyped", "all PATHs are looked up before any is touched",
			"cmd/fastlabel/work.go", "err := j.lookUp(ctx, paths, all); err != nil", "err := error(nil); err != nil"),
		mutant("paths-not-refused", "TestRefusedPaths", "all PATHs are refused before any is touched",
			"cmd/fastlabel/lookup.go", "if why, instead := places.Why(path, info); why != \"\" {", "if why, instead := places.Why(path, info); why == \"never\" {"),
		mutant("hook-above-the-host", "TestHookLinked", "a directory that holds the host's own is no volume",
			volume, "bool { return lies(source, p) }", "bool { return source == p }"),
		mutant("hook-kubelets", "TestHookHosts", "what the kubelet writes and labels is no volume",
			volume, "if h.isKubelets(source) {", "if false {"),
		mutant("hook-labels-the-host", "TestHookChooses", "true labels volumes, and nothing of the host's",
			hook, "why := host.NoVolume(m, source); why != \"\"", "why := host.NoVolume(m, source); why == \"never\""),
	}
}
