// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/words"
)

func completionCommand() *cobra.Command {
	return &cobra.Command{
		Use:                   "completion bash|zsh|fish",
		GroupID:               onItself,
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

// firstWords completes the first word, for which cobra offers commands as long as no
// flag is given: the commands that take the flags given, and, since a command's
// name keeps the shell from completing PATHs, what lies here.
func firstWords(c *cobra.Command, operands []string, begun string) (offered []string, _ cobra.ShellCompDirective) {
	if len(operands) > 0 {
		return nil, cobra.ShellCompDirectiveDefault
	}
	given := 0
	c.Flags().Visit(func(*pflag.Flag) { given++ })
	for _, other := range c.Commands() {
		takes := given > 0 && strings.HasPrefix(other.Name(), begun)
		c.Flags().Visit(func(f *pflag.Flag) { takes = takes && other.Flags().Lookup(f.Name) != nil })
		if takes {
			offered = append(offered, cobra.CompletionWithDesc(other.Name(), other.Short))
		}
	}
	if slices.ContainsFunc(callable(c), func(name string) bool { return strings.HasPrefix(name, begun) }) {
		entries, _ := os.ReadDir(".")
		for _, e := range entries {
			if name := e.Name(); strings.HasPrefix(name, begun) && words.Shell(name) == name && (begun != "" || name[0] != '.') {
				offered = append(offered, name)
			}
		}
	}
	return offered, cobra.ShellCompDirectiveDefault
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
