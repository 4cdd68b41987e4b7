// SPDX-License-Identifier: Apache-2.0

package mutants

// callers break what Group, the budget of all runs, the hook and the command decide
// about what is asked of them.
func callers() []Mutant {
	const (
		group  = "relabel/group.go"
		look   = "relabel/group_look.go"
		budget = "relabel/budget.go"
		hook   = "cmd/fastlabel/hook.go"
	)
	return []Mutant{
		{
			Name: "group-joins-what-stops", By: "TestGroupJoinsNoneThatStops",
			Breaks: "a caller does not join work that is being stopped",
			Edits:  edits(group, "if w.label == label && !w.stopped {", "if w.label == label {"),
		},
		{
			Name: "group-late-timer", By: "TestGroupLinger",
			Breaks: "an absence does not end with the time of the one before",
			Edits:  edits(group, "if w.callers > 0 || w.idle != absence {", "if w.callers > 0 {"),
		},
		{
			Name: "group-two-runs", By: "TestGroupOtherLabel",
			Breaks: "only the first of a queue runs",
			Edits:  edits(group, "len(v.queue) == 1 {", "len(v.queue) > 0 {"),
		},
		{
			Name: "group-old-look", By: "TestGroupLooksAfterwards",
			Breaks: "the root is looked at after its caller arrived",
			Edits:  edits(look, "if now != nil && now.next != nil {\n\t\treturn now.next\n", "if now != nil {\n\t\treturn now\n"),
		},
		{
			Name: "group-doubt-ignored", By: "TestGroupKept",
			Breaks: "a kept success is held against the root's label",
			Edits:  edits(group, "&& w.label == label && w != l.doubt {", "&& w.label == label {"),
		},
		{
			Name: "budget-hung-works", By: "TestBudgetHung",
			Breaks: "a worker whose call hangs keeps no run from beginning",
			Edits:  edits(budget, "\ts.b.working -= n - s.hung\n", ""),
		},
		{
			Name: "budget-overtaken", By: "TestBudget",
			Breaks: "while a run waits for its share, the others take nothing more",
			Edits:  edits(budget, "if len(b.queue) > 0 || s.idle {", "if s.idle {"),
		},
		{
			Name: "budget-left-waiting", By: "TestBudgetTurn",
			Breaks: "a run that gives up its place in the queue holds up no other",
			Edits:  edits(budget, "b.serve() // the next may want less", "// the next may want less"),
		},
		{
			Name: "hook-floods", By: "TestHookFlood",
			Breaks: "what a pod's author writes floods no log",
			Edits:  edits("cmd/fastlabel/hooklines.go", "case l.lines >= most && !last:", "case l.lines >= 1<<20*most && !last:"),
		},
		{
			Name: "hook-follows-bundle", By: "TestHookRefusesStates",
			Breaks: "a bundle that is a link is refused",
			Edits:  edits("cmd/fastlabel/hookstate.go", "\tif !info.IsDir() {", "\tif false {"),
		},
		{
			Name: "paths-not-looked-up", By: "TestMistyped",
			Breaks: "all PATHs are looked up before any is touched",
			Edits:  edits("cmd/fastlabel/work.go", "err := j.lookUp(ctx, paths, all); err != nil", "err := error(nil); err != nil"),
		},
		{
			Name: "metrics-replace-all", By: "TestMetricsSpares in cmd/fastlabel",
			Breaks: "metrics replace nothing but metrics, such as a record",
			Edits:  edits("cmd/fastlabel/internal/metrics/metrics.go", "if n == 0 && err == io.EOF || n == len(own) && string(begin) == own {", "if n >= 0 {"),
		},
		{
			Name: "hook-labels-the-host", By: "TestHookLeavesAlone",
			Breaks: "the host's devices, sockets and kernel filesystems are left alone",
			Edits:  edits(hook, "why := host.noVolume(m, source); why != \"\"", "why := host.noVolume(m, source); why == \"never\""),
		},
	}
}
