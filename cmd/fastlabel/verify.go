// SPDX-License-Identifier: Apache-2.0

package main

import "github.com/spf13/cobra"

func verifyCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "verify [flags] PATH...",
		Short:   "read every label, write none",
		Long:    "Differences are listed with -v.\n" + ownLevel + listed + inJSON + whenAsked,
		Example: "  fastlabel verify -v -l s0:c35,c75 /var/lib/pv\n",
	}
}
