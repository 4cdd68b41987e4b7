// SPDX-License-Identifier: Apache-2.0

package main

import "github.com/spf13/cobra"

const restoreHelp = `FILE is checked to its end before anything is written. What bears neither the
label that the run gave nor the one it bore before is left alone, and named, as
is another file of the same name. In the counts, written are those put back,
right those that bore their label already, and skipped those left alone.
PATH gets its own label last, if all else is as it was.
`

func restoreCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "restore [flags] FILE",
		GroupID: onVolumes,
		Short:   "put back what --record kept",
		Long:    restoreHelp + "\n" + listed + inJSON + whenAsked,
		Example: "  fastlabel restore /root/pv.record\n",
	}
}
