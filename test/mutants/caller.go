// SPDX-License-Identifier: Apache-2.0

package mutants

// callers break what Group and the hook decide about a caller's wish.
func callers() []Mutant {
	const (
		group = "relabel/group.go"
		look  = "relabel/group_look.go"
		hook  = "cmd/fastlabel/hook.go"
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
			Name: "hook-labels-the-host", By: "TestHookLeavesAlone",
			Breaks: "the host's devices, sockets and kernel filesystems are left alone",
			Edits:  edits(hook, "why := host.noVolume(m, source); why != \"\"", "why := host.noVolume(m, source); why == \"never\""),
		},
	}
}
