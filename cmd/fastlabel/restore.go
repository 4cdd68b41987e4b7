// SPDX-License-Identifier: Apache-2.0

package main

import "github.com/spf13/cobra"

const restoreHelp = `FILE is checked to its end before anything is written. An entry is left alone,
and listed, if it is another file of that name, or has neither the label that
the run gave nor its former one. In the counts, written are those put back,
right those that had their label already, and skipped those left alone. PATH
gets its own label last, if everything else is as it was.
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
