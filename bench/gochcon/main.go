// SPDX-License-Identifier: Apache-2.0

// Command gochcon is go-selinux's Chcon as a command: gochcon LABEL PATH.
package main

import (
	"fmt"
	"os"

	"github.com/opencontainers/selinux/go-selinux"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: gochcon LABEL PATH")
		os.Exit(2)
	}
	if err := selinux.Chcon(os.Args[2], os.Args[1], true); err != nil {
		fmt.Fprintln(os.Stderr, "gochcon:", err)
		os.Exit(1)
	}
}
