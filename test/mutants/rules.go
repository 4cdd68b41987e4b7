// SPDX-License-Identifier: Apache-2.0

package mutants

// rules breaks labels by rules.
func rules() []Mutant {
	const (
		rules = "relabel/rules.go"
		dir   = "internal/fcontexts/dir.go"
		enter = "internal/walk/enter_linux.go"
	)
	return []Mutant{
		{
			Name: "whole-for-type", By: "TestApply in relabel",
			Breaks: "only the type changes",
			Edits:  edits("relabel/contexts/contexts.go", "custom.Change(has, want, false)", "custom.Change(has, want, true)"),
		},
		{
			Name: "visit-overwrites", By: "TestApply in relabel",
			Breaks: "of a directory too",
			Edits:  edits(enter, "case w.walk.job.Change != nil || ", "case "),
		},
		{
			Name: "custom-written", By: "TestApply in relabel",
			Breaks: "a customizable type stays",
			Edits:  edits("internal/fcontexts/change.go", "wanted == typ || c[typ] {", "wanted == typ {"),
		},
		{
			Name: "kind-lost", By: "TestApply in relabel",
			Breaks: "an entry keeps its kind in the order of inodes",
			Edits:  edits("internal/order/entries_linux.go", "uint64(r.Kind&kindMask)", "uint64(r.Kind&sys.KindFile|r.Kind&sys.KindDir)"),
		},
		{
			Name: "left-with-directory", By: "TestApply in relabel",
			Breaks: "what is in a directory that a rule leaves alone is looked at",
			Edits:  edits(enter, "if !d.frozen {\n\t\tw.scan(d, fd)", "if o := d.outcome; o != Skipped {\n\t\tw.scan(d, fd)"),
		},
		{
			Name: "verify-by-claim", By: "TestVerifyAfterRules in cmd/fastlabel",
			Breaks: "verify says what the labels are",
			Edits:  edits("internal/commit/root_linux.go", "c.Walk.Labelled(c, c.Found != c.Want)", "c.Walk.Labelled(c, !c.Right())"),
		},
		{
			Name: "root-as-it-is", By: "TestRestoreconRoot in cmd/fastlabel",
			Breaks: "with --root, rules are asked about the path in it",
			Edits:  edits("relabel/contexts/contexts.go", "in, ok := strings.CutPrefix(path, s.root)", "in, ok := strings.CutPrefix(path, \"\")"),
		},
		{
			Name: "pattern-as-name", By: "TestRestorecon in cmd/fastlabel",
			Breaks: "restorecon takes patterns in lists",
			Edits:  edits("cmd/fastlabel/work.go", "if all, err = j.globbed(ctx, all)", "if _, err = j.globbed(ctx, all)"),
		},
		{
			Name: "all-of-a-kind", By: "TestShared in internal/fcontexts",
			Breaks: "a rule of one kind does not hold for all",
			Edits:  edits(dir, "rules[i].Kind != 0 }) {", "rules[i].Kind != 0 }) && false {"),
		},
		{
			Name: "patience-no-match", By: "TestPatience in internal/fcontexts",
			Breaks: "an expression that takes too long is an error",
			Edits:  edits("internal/fcontexts/hard.go", "return false, fmt.Errorf(\"it takes", "if err != nil {\n\t\treturn false, nil\n\t}\n\treturn false, fmt.Errorf(\"it takes"),
		},
		{
			Name: "unusable-for-all", By: "TestUnusable in internal/fcontexts",
			Breaks: "a pattern that cannot be used stops no path that it cannot match",
			Edits:  edits("internal/fcontexts/hard.go", "if len(path) < len(h.fixed) ||", "if h.err == nil && len(path) < len(h.fixed) || h.err == nil &&"),
		},
		{
			Name: "none-as-any", By: "TestLookup in internal/fcontexts",
			Breaks: "<<none>> wins over later rules that begin higher up",
			Edits:  edits(dir, "if r.Context == \"\" {\n\t\t\tbreak", "if false {\n\t\t\tbreak"),
		},
	}
}
