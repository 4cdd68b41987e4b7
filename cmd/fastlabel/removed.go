// SPDX-License-Identifier: Apache-2.0

package main

// removedFlags and removedCommands are what the release before this one had,
// each with what to use instead. A removed command is refused as an operand too: it would be
// labelled if a file had its name. The lists are for one release.
var (
	removedFlags = map[string]string{
		"for":           "give the level of the pod by --level",
		"from":          "chcon, on what find -context finds",
		"shard":         "one run labels a volume: without it",
		"log-format":    "--json prints the same events",
		"log-level":     "--json -v prints the same events",
		"max-pressure":  "--max-rate, or nice -n 19 ionice -c 3 fastlabel",
		"no-sync":       "the default: no run waits for the disk where the filesystem keeps the order; --sync does",
		"nice":          "nice -n 19 ionice -c 3 fastlabel",
		"metrics":       "--json has the same counts",
		"commit-shards": "one run labels a volume: without it",
		"partial":       setfattr,
		"record":        "keep the labels with getfattr before the run, as docs/undo.md says",
		"root":          setfattr,
	}
	removedCommands = map[string]string{
		"explain": "docs/stuck-pods.md says what runtimes do with a volume; see fastlabel probe, fastlabel -n",
		"restore": setfattr,
	}
)

const setfattr = "put labels back with setfattr --restore, as docs/undo.md says"
