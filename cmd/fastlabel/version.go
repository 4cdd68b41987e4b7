// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// version is set by the linker: -X main.version=v1.2.3.
var version string

// versionLine names the build: what the linker was told, else the module's
// version, and the commit if the build knows it.
func versionLine() string {
	v, commit := version, ""
	if info, ok := debug.ReadBuildInfo(); ok {
		if v == "" {
			v = info.Main.Version
		}
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
	if v == "" {
		v = "unknown"
	}
	return fmt.Sprintf("fastlabel %s (%s, %s/%s%s)", v, runtime.Version(), runtime.GOOS, runtime.GOARCH, commit)
}
