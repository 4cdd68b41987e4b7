// SPDX-License-Identifier: Apache-2.0

package main

import "github.com/spf13/cobra"

const labelHelp = `Exit codes: 0 done; 1 some failed; 2 usage, nothing begun; 3 refused, or no
labels there; 4 differences found; 124 --timeout reached; 130, 143 interrupted
` + ownLevel

const ownLevel = `-n, verify and probe compare with s0, and ask for -l if PATH has another level.
`

const examples = `  fastlabel -l s0:c35,c75 /var/lib/pv             # the volume of one pod
  fastlabel -n -v -l s0:c35,c75 /var/lib/pv       # what would change
  find /srv/* -prune -print0 | fastlabel -0 -f -  # many PATHs
`

// labelCommand returns fastlabel itself, and fastlabel label.
func labelCommand(name string) *cobra.Command {
	return &cobra.Command{
		Use:     name + " [flags] PATH...",
		Short:   "label PATH and everything beneath it",
		Long:    labelHelp,
		Example: examples,
		Args:    cobra.ArbitraryArgs,
	}
}

func verifyCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "verify [flags] PATH...",
		Short:   "read every label, write none",
		Long:    "Differences are listed with -v.\n" + ownLevel + listed + inJSON + whenAsked,
		Example: "  fastlabel verify -v -l s0:c35,c75 /var/lib/pv\n",
	}
}
