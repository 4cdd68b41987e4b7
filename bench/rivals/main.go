// SPDX-License-Identifier: Apache-2.0

// Command rivals is what is a library, peers and ours, as a command: rivals
// [-at-once N] NAME LABEL PATH...
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"sync"
	"sync/atomic"

	"github.com/karrick/godirwalk"
	"github.com/opencontainers/selinux/go-selinux"
	"golang.org/x/sys/unix"

	"github.com/fastlabel/fastlabel/relabel"
)

var group relabel.Group

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
	"library": func(path, label string) error {
		_, err := relabel.Tree(context.Background(), path, label, nil)
		return err
	},
	"group": func(path, label string) error {
		_, err := group.Tree(context.Background(), path, label, relabel.TrustNothing)
		return err
	},
}

func main() {
	atOnce := flag.Int("at-once", 1, "how many PATHs are under way")
	flag.Parse()
	if flag.NArg() < 3 || rivals[flag.Arg(0)] == nil {
		fmt.Fprintln(os.Stderr, "usage: rivals [-at-once N] go-selinux|godirwalk|library|group LABEL PATH...")
		os.Exit(2)
	}
	var failed atomic.Bool
	var all sync.WaitGroup
	free := make(chan struct{}, *atOnce)
	for _, path := range flag.Args()[2:] {
		free <- struct{}{}
		all.Go(func() {
			if err := rivals[flag.Arg(0)](path, flag.Arg(1)); err != nil {
				fmt.Fprintln(os.Stderr, "rivals:", err)
				failed.Store(true)
			}
			<-free
		})
	}
	all.Wait()
	if failed.Load() {
		os.Exit(1)
	}
}
