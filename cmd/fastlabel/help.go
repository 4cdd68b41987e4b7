// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"slices"
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
func helpCommand(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "the same as COMMAND --help",
		ValidArgsFunction: func(_ *cobra.Command, operands []string, _ string) (names []string, _ cobra.ShellCompDirective) {
			if len(operands) == 0 {
				names = callable(root)
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, operands []string) error {
			about, rest, _ := root.Find(operands)
			if len(rest) == 0 {
				return about.Help()
			}
			text := words.Brief(rest[0]) + ": no such command"
			if near := nearest(rest[0], callable(root)); near != "" {
				text += "; did you mean " + near + "?"
			}
			return errors.New(text)
		},
	}
}

// help is the text of --help: that of fastlabel itself begins with all commands.
func help(c *cobra.Command, all []*cobra.Command) string {
	var b strings.Builder
	usages := []*cobra.Command{c}
	if nameOf(c) == "" {
		c = c.Root()
		usages = slices.Concat([]*cobra.Command{c}, all)
	}
	for i, each := range usages {
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
