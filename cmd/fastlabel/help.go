// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/report"
)

var listed = fmt.Sprintf("The first %d failures of each PATH are listed; with -v or --json all are.\n", report.MaxListed)

const inJSON = `In JSON, a path that is not UTF-8 has its exact bytes in path_base64.
`

const whenAsked = `SIGUSR1 prints the progress.
`

const usageLine = "%-6s %-36s %s\n"

// help returns the text of --help. That of fastlabel itself begins with all commands.
func help(c *cobra.Command) string {
	var b strings.Builder
	if nameOf(c) == "" {
		c = c.Root()
		c.InitDefaultCompletionCmd()
	}
	fmt.Fprintf(&b, usageLine, "Usage:", c.UseLine(), c.Short)
	if !c.HasParent() {
		for _, each := range c.Commands() {
			switch each.Name() {
			case "label", "help":
			case "completion":
				fmt.Fprintf(&b, usageLine, "", each.CommandPath()+" SHELL", "print a script for bash, zsh or fish")
			default:
				fmt.Fprintf(&b, usageLine, "", each.UseLine(), each.Short)
			}
		}
	}
	for _, title := range []string{"Flags", "Advanced flags"} {
		group := pflag.NewFlagSet("", pflag.ContinueOnError)
		group.SortFlags = false
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if slices.Contains(advanced, f.Name) == (title != "Flags") {
				group.AddFlag(f)
			}
		})
		if text := group.FlagUsages(); text != "" {
			b.WriteString("\n" + title + ":\n" + text)
		}
	}
	if c.Long != "" {
		b.WriteString("\n" + c.Long)
	}
	if c.Example != "" {
		b.WriteString("\nExamples:\n" + c.Example)
	}
	return b.String()
}
