// SPDX-License-Identifier: Apache-2.0

package main

import "github.com/spf13/cobra"

const exitCodes = `Exit codes:
  0  done, or nothing to do       4    differences found, changed meanwhile
  1  some entries failed          124  --timeout reached
  2  usage; nothing was begun     130  interrupted (143: SIGTERM, SIGHUP)
  3  refused, or no labels there
The worst of all PATHs counts: 130 and 143, 124, 2, 1, 3, 4, 0.
`

const skipHelp = `--skip root passes over a PATH that bears the label; top asks its entries too.
--skip unchanged looks only where something was created, renamed or moved in
since the last run to this label; labels changed in place it does not find.
`

const withheld = `Where one failed, PATH itself is left without the label, and counts as skipped.
`

const examples = `  fastlabel -l s0:c35,c75 /var/lib/pv             # the volume of one pod
  fastlabel -n -v /var/lib/pv                     # what would change
  fastlabel --skip root /var/lib/pv               # unless PATH has the label
  fastlabel --record pv.rec -t usr_t /srv/pv      # fastlabel restore undoes it
  fastlabel --nice --max-rate 5000 /srv/pv        # beside other work
  find /srv/* -prune -print0 | fastlabel -0 -f -  # many PATHs
`

// labelCommand is fastlabel itself, and fastlabel label.
func labelCommand(name string) *cobra.Command {
	return &cobra.Command{
		Use:     name + " [flags] PATH...",
		Short:   "label PATH and everything beneath it",
		Long:    skipHelp + "\n" + listed + withheld + inJSON + whenAsked + "\n" + exitCodes + "\n" + wordsHelp,
		Example: examples,
	}
}
