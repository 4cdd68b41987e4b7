// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"
)

func completionCommand() *cobra.Command {
	return &cobra.Command{
		Use:                   "completion bash|zsh|fish",
		DisableFlagsInUseLine: true,
		Short:                 "print a script for that shell",
		Example:               "  . <(fastlabel completion bash)\n",
		ValidArgs:             []string{"bash", "zsh", "fish"},
		RunE: func(c *cobra.Command, operands []string) error {
			switch out := c.OutOrStdout(); strings.Join(operands, " ") {
			case "bash":
				return c.Root().GenBashCompletionV2(out, true)
			case "zsh":
				return c.Root().GenZshCompletion(out)
			case "fish":
				return c.Root().GenFishCompletion(out, true)
			}
			return errors.New("completion takes one of bash, zsh, fish")
		},
	}
}

// offering completes the value of a flag: words, "file" or "dir".
func offering(offer string) cobra.CompletionFunc {
	switch offer {
	case "file":
		return cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault)
	case "dir":
		return cobra.FixedCompletions(nil, cobra.ShellCompDirectiveFilterDirs)
	}
	return cobra.FixedCompletions(strings.Fields(offer), cobra.ShellCompDirectiveNoFileComp)
}
