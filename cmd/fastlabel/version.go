// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is set by the linker: -X main.version=v1.2.3.
var version string

// versionLine names the build: what the linker was told, else the module's version, which has the commit.
func versionLine() string {
	name := cmp.Or(version, "unknown")
	if info, ok := debug.ReadBuildInfo(); ok {
		name = cmp.Or(version, info.Main.Version, name)
	}
	return fmt.Sprintf("fastlabel %s (%s, %s/%s)", name, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:                   "version",
		DisableFlagsInUseLine: true,
		Short:                 "print the version",
		Args:                  cobra.NoArgs,
		ValidArgsFunction:     cobra.NoFileCompletions,
		Run:                   func(c *cobra.Command, _ []string) { fmt.Fprintln(c.OutOrStdout(), versionLine()) },
	}
}
