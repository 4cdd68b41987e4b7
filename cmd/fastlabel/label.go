// SPDX-License-Identifier: Apache-2.0

package main

import "github.com/spf13/cobra"

const labelHelp = `--skip root skips a PATH that has the label; top reads its entries' labels too.

Exit codes:
  0  done, or nothing to do   3  refused, or no labels   124  --timeout reached
  1  some entries failed      4  differences found       130  interrupted
  2  usage; nothing begun                                143  SIGTERM, SIGHUP
`

const examples = `  fastlabel -l s0:c35,c75 /var/lib/pv             # the volume of one pod
  fastlabel -n -v /var/lib/pv                     # what would change
  fastlabel --skip root /var/lib/pv               # unless PATH has the label
  fastlabel -t usr_t /srv/pv                      # with another type
  fastlabel --max-rate 5000 /srv/pv               # beside other work
  find /srv/* -prune -print0 | fastlabel -0 -f -  # many PATHs
`

// labelCommand is fastlabel itself, and fastlabel label.
func labelCommand(name string) *cobra.Command {
	return &cobra.Command{
		Use:     name + " [flags] PATH...",
		Short:   "label PATH and everything beneath it",
		Long:    labelHelp,
		Example: examples,
	}
}

func verifyCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "verify [flags] PATH...",
		Short:   "read every label, write none",
		Long:    "Differences are listed with -v.\n" + listed + inJSON + whenAsked,
		Example: "  fastlabel verify -v /var/lib/pv\n",
	}
}
