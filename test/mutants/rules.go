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
		mutant("whole-for-type", "TestApply in relabel", "only the type changes",
			"relabel/contexts/contexts.go", "custom.Change(has, want, false)", "custom.Change(has, want, true)"),
		mutant("visit-overwrites", "TestApply in relabel", "of a directory too",
			enter, "case w.walk.job.Change != nil || ", "case "),
		mutant("custom-written", "TestApply in relabel", "a customizable type stays",
			"internal/fcontexts/change.go", "wanted == typ || c[typ] {", "wanted == typ {"),
		mutant("kind-lost", "TestApply in relabel", "an entry keeps its kind in the order of inodes",
			"internal/order/entries_linux.go", "uint64(r.Kind&kindMask)", "uint64(r.Kind&sys.KindFile|r.Kind&sys.KindDir)"),
		mutant("left-with-directory", "TestApply in relabel", "what is in a directory that a rule leaves alone is looked at",
			enter, "if !d.frozen {\n\t\tw.scan(d, fd)", "if o := d.outcome; o != Skipped {\n\t\tw.scan(d, fd)"),
		mutant("verify-by-claim", "TestVerifyAfterRules in cmd/fastlabel", "verify says what the labels are",
			"internal/commit/root_linux.go", "c.Run.Labelled(c, c.Found != c.Want)", "c.Run.Labelled(c, !c.Right())"),
		mutant("root-as-it-is", "TestRestoreconRoot in cmd/fastlabel", "with --root, rules are asked about the path in it",
			"relabel/contexts/contexts.go", "in, ok := strings.CutPrefix(path, s.root)", "in, ok := strings.CutPrefix(path, \"\")"),
		mutant("pattern-as-name", "TestRestorecon in cmd/fastlabel", "restorecon takes patterns in lists",
			"cmd/fastlabel/work.go", "if all, err = j.globbed(ctx, all)", "if _, err = j.globbed(ctx, all)"),
		mutant("all-of-a-kind", "TestShared in internal/fcontexts", "a rule of one kind does not hold for all",
			dir, "rules[i].Kind != 0 }) {", "rules[i].Kind != 0 }) && false {"),
		mutant("patience-no-match", "TestPatience in internal/fcontexts", "an expression that takes too long is an error",
			"internal/fcontexts/hard.go", "return false, fmt.Errorf(\"it takes", "if err != nil {\n\t\treturn false, nil\n\t}\n\treturn false, fmt.Errorf(\"it takes"),
		mutant("unusable-for-all", "TestUnusable in internal/fcontexts", "a pattern that cannot be used stops no path that it cannot match",
			"internal/fcontexts/hard.go", "if len(path) < len(h.fixed) ||", "if h.err == nil && len(path) < len(h.fixed) || h.err == nil &&"),
		mutant("none-as-any", "TestLookup in internal/fcontexts", "<<none>> wins over later rules that begin higher up",
			dir, "if r.Context == \"\" {\n\t\t\tbreak", "if false {\n\t\t\tbreak"),
	}
}
