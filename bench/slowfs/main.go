// SPDX-License-Identifier: Apache-2.0

// Command slowfs is a filesystem in memory each request to which takes its
// time, as on a network, however many are under way. It stands for a server
// that is never busy.
//
//	slowfs [-delay D] [-files N] [-dirs N] MOUNTPOINT
//
// Its directories share the files evenly, and every entry has a label. It
// prints "ready" once mounted; SIGTERM unmounts it. Two controls on its root
// take no time:
//
//	setxattr user.slowfs.fill LABEL   every entry has LABEL
//	getxattr user.slowfs.wrong.LABEL  how many do not, in decimal
package main

import (
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"

	"github.com/fastlabel/fastlabel/bench/server"
)

// With attributes in the listing a walk that is quick enough would look up no name: the
// delays would depend on the walk's speed.
var options = fuse.MountOptions{Name: "slowfs", FsName: "slowfs", DirectMountStrict: true, DisableReadDirPlus: true}

func main() {
	delay := flag.Duration("delay", time.Millisecond, "what each request takes")
	files := flag.Int("files", 1000, "how many files")
	dirs := flag.Int("dirs", 1, "how many directories share them")
	flag.Parse()
	if flag.NArg() != 1 || *dirs < 1 || *files < 0 {
		fmt.Fprintln(os.Stderr, "usage: slowfs [-delay D] [-files N] [-dirs N] MOUNTPOINT")
		os.Exit(2)
	}
	if err := server.Run(newTree(*delay, *files, *dirs), flag.Arg(0), &options); err != nil {
		fmt.Fprintln(os.Stderr, "slowfs:", err)
		os.Exit(1)
	}
}
