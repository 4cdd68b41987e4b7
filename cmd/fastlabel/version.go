// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is set by the linker: -X main.version=v1.2.3.
var version string

// versionName is what the linker was told, else the module's version.
func versionName() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "unknown"
}

// versionLine names the build: its version, and the commit if the build knows it.
func versionLine() string {
	commit := ""
	if info, ok := debug.ReadBuildInfo(); ok {
		dirty := ""
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				commit = ", commit " + s.Value
			case "vcs.modified":
				if s.Value == "true" {
					dirty = " and changes"
				}
			}
		}
		if commit != "" {
			commit += dirty
		}
	}
	return fmt.Sprintf("fastlabel %s (%s, %s/%s%s)", versionName(), runtime.Version(), runtime.GOOS, runtime.GOARCH, commit)
}

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:                   "version",
		GroupID:               onItself,
		DisableFlagsInUseLine: true,
		Short:                 "print the version",
		Example:               "  fastlabel version\n",
		ValidArgsFunction:     cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, operands []string) error {
			if len(operands) > 0 {
				return errors.New("version takes no PATH")
			}
			fmt.Fprintln(c.OutOrStdout(), versionLine())
			return nil
		},
	}
}
