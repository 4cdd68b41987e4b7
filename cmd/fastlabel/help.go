// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/report"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/words"
)

var listed = fmt.Sprintf("The first %d failures of each PATH are listed; with -v or --json all are.\n", report.MaxListed)

const inJSON = `In JSON, a path that is not UTF-8 has its exact bytes in path_base64.
`

const whenAsked = `SIGUSR1 prints the progress.
`

// helpCommand is help COMMAND for COMMAND --help.
func helpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "the same as COMMAND --help",
		ValidArgsFunction: func(c *cobra.Command, operands []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(operands) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return callable(c.Root()), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(c *cobra.Command, operands []string) error {
			if len(operands) == 0 {
				return c.Root().Help()
			}
			for _, other := range c.Root().Commands() {
				if other.Name() == operands[0] {
					return other.Help()
				}
			}
			text := words.Brief(operands[0]) + ": no such command"
			if near := nearest(operands[0], callable(c.Root())); near != "" {
				text += "; did you mean " + near + "?"
			}
			return errors.New(text)
		},
	}
}

// help is the text of --help.
func help(c *cobra.Command) string {
	var b strings.Builder
	if nameOf(c) == "" {
		c = c.Root()
	}
	for i, each := range shown(c) {
		lead := "Usage:"
		if i > 0 {
			lead = ""
		}
		fmt.Fprintf(&b, "%-6s %-36s %s\n", lead, each.UseLine(), each.Short)
	}
	for _, fs := range grouped(c) {
		fmt.Fprintf(&b, "\n%s:\n%s", fs.Name(), fs.FlagUsages())
	}
	if c.Long != "" {
		b.WriteString("\n" + c.Long)
	}
	b.WriteString("\nExamples:\n" + c.Example)
	return b.String()
}
