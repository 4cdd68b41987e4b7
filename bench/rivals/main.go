// SPDX-License-Identifier: Apache-2.0

// Command rivals is what is a library, as a command: rivals go-selinux LABEL PATH...
package main

import (
	"fmt"
	"os"

	"github.com/opencontainers/selinux/go-selinux"
)

func main() {
	if len(os.Args) < 4 || os.Args[1] != "go-selinux" {
		fmt.Fprintln(os.Stderr, "usage: rivals go-selinux LABEL PATH...")
		os.Exit(2)
	}
	code := 0
	for _, path := range os.Args[3:] {
		if err := selinux.Chcon(path, os.Args[2], true); err != nil {
			fmt.Fprintln(os.Stderr, "rivals:", err)
			code = 1
		}
	}
	os.Exit(code)
}
