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
		{
			Name: "group-joins-what-stops", By: "TestGroupJoinsNoneThatStops",
			Breaks: "a caller does not join work that is being stopped",
			Edits:  edits(flight, "w.Key != key || w.ctx.Err() != nil {", "w.Key != key {"),
		},
		{
			Name: "group-late-timer", By: "TestGroupLinger",
			Breaks: "an absence does not end with the time of the one before",
			Edits:  edits(flight, "w.absence == absence {", "w.absence >= absence {"),
		},
		{
			Name: "group-two-runs", By: "TestGroupOtherLabel",
			Breaks: "only the first of a queue runs",
			Edits:  edits(flight, "if i < 0 || g.underWay(id) != nil {", "if i < 0 {"),
		},
		{
			Name: "group-forgets-success", By: "TestGroupFresh",
			Breaks: "after a success that nobody was told of, the next run trusts the root",
			Edits:  edits(flight, "\t\t\tagain = true\n", ""),
		},
		{
			Name: "group-runs-abandoned", By: "TestGroupLeftInQueue",
			Breaks: "what nobody waits for does not begin",
			Edits:  edits(flight, "w.state == queued && w.callers > 0", "w.state == queued"),
		},
		{
			Name: "group-run-elsewhere", By: "TestGroupMoved",
			Breaks: "the root that a run opens is the one that was looked at",
			Edits:  edits("relabel/open_linux.go", "at != *want && at.ByAnyMount() != *want {", "at == (mounts.Volume{}) {"),
		},
		{
			Name: "group-stop-leaves-open", By: "TestGroupStopHeld",
			Breaks: "when Stop returns nothing is open any more",
			Edits:  edits(flight, "if !await(ctx, w.released) {", "if false {"),
		},
		{
			Name: "group-stop-overlooks", By: "TestGroupStopArrival",
			Breaks: "a caller who arrived before Stop is stopped, too",
			Edits:  edits(flight, "if mine.Err() != nil && ctx.Err() == nil {", "if false {"),
		},
		{
			Name: "probes-hang-on", By: "TestProbeManyPaths",
			Breaks: "calls without a context do not all hang on one volume",
			Edits:  edits("internal/run/probes.go", "n >= probesHung {", "n < 0 {"),
		},
		{
			Name: "budget-hung-works", By: "TestBudgetHung",
			Breaks: "a worker whose call hangs keeps no run from beginning",
			Edits:  edits(budget, "(workers - hung) - (s.workers - s.hung)", "workers - s.workers"),
		},
		{
			Name: "budget-overtaken", By: "TestBudget",
			Breaks: "while a run waits for its share, the others take nothing more",
			Edits:  edits(budget, "if len(b.queue) > 0 || s.idle ||", "if s.idle ||"),
		},
		{
			Name: "hook-floods", By: "TestHookFlood",
			Breaks: "what a pod's author writes floods no log",
			Edits:  edits(hook, "case l.lines >= most && !last:", "case l.lines >= 1<<20*most && !last:"),
		},
		{
			Name: "paths-not-looked-up", By: "TestMistyped",
			Breaks: "all PATHs are looked up before any is touched",
			Edits:  edits("cmd/fastlabel/work.go", "err := j.lookUp(ctx, paths, all); err != nil", "err := error(nil); err != nil"),
		},
		{
			Name: "paths-not-refused", By: "TestRefusedPaths",
			Breaks: "all PATHs are refused before any is touched",
			Edits:  edits("cmd/fastlabel/lookup.go", "if why, instead := places.Why(path, info); why != \"\" {", "if why, instead := places.Why(path, info); why == \"never\" {"),
		},
		{
			Name: "hook-above-the-host", By: "TestHookLinked",
			Breaks: "a directory that holds the host's own is no volume",
			Edits:  edits(volume, "bool { return lies(source, p) }", "bool { return source == p }"),
		},
		{
			Name: "hook-kubelets", By: "TestHookHosts",
			Breaks: "what the kubelet writes and labels is no volume",
			Edits:  edits(volume, "if h.isKubelets(source) {", "if false {"),
		},
		{
			Name: "hook-labels-the-host", By: "TestHookLeavesAlone",
			Breaks: "true labels volumes, and nothing of the host's",
			Edits:  edits(hook, "why := host.NoVolume(m, source); why != \"\"", "why := host.NoVolume(m, source); why == \"never\""),
		},
	}
}
