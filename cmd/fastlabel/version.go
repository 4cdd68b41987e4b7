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

// versionLine names the build: what the linker was told, else the module's version, and the
// commit if the build knows it.
func versionLine() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = new(debug.BuildInfo)
	}
	commit, dirty := "", "" // go tells both, or none
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			commit = ", commit " + s.Value
		} else if s.Key == "vcs.modified" && s.Value == "true" {
			dirty = " and changes"
		}
	}
	return fmt.Sprintf("fastlabel %s (%s, %s/%s%s)", cmp.Or(version, info.Main.Version, "unknown"), runtime.Version(), runtime.GOOS, runtime.GOARCH, commit+dirty)
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
