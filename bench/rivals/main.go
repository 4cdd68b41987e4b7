// SPDX-License-Identifier: Apache-2.0

// Command rivals is the peers that are libraries, each as a command: rivals
// NAME PATH LABEL.
package main

import (
	"fmt"
	"os"

	"github.com/karrick/godirwalk"
	"github.com/opencontainers/selinux/go-selinux"
	"golang.org/x/sys/unix"
)

var rivals = map[string]func(path, label string) error{
	"go-selinux": func(path, label string) error { return selinux.Chcon(path, label, true) },
	"godirwalk": func(path, label string) error {
		value := []byte(label)
		return godirwalk.Walk(path, &godirwalk.Options{
			Unsorted: true,
			Callback: func(name string, _ *godirwalk.Dirent) error {
				return unix.Lsetxattr(name, "security.selinux", value, 0)
			},
		})
	},
}

func main() {
	if len(os.Args) != 4 || rivals[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: rivals go-selinux|godirwalk PATH LABEL")
		os.Exit(2)
	}
	if err := rivals[os.Args[1]](os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, "rivals:", err)
		os.Exit(1)
	}
}
