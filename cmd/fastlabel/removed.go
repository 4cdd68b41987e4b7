// SPDX-License-Identifier: Apache-2.0

package main

// removedFlags and removedCommands are what the release before this one had, each with
// what to use instead. A removed command is refused as an operand too: it would be
// labelled if a file had its name. Both lists are for one release.
var (
	removedFlags    = map[string]string{}
	removedCommands = map[string]string{}
)
