// SPDX-License-Identifier: Apache-2.0

// Command slowdisk is a disk in memory, as one that a cloud attaches by network:
// each request takes its time, and only so many a second begin. It is a FUSE
// filesystem with one file, disk, for a loop device that opens it directly.
//
//	slowdisk [-size BYTES] [-log FILE] MOUNTPOINT
//
// It prints "ready" once mounted; SIGTERM unmounts it. Two controls on its root:
//
//	setxattr user.slowdisk.pace "LIMIT DELAY"  from now on; "0 0s" as at first: none
//	getxattr user.slowdisk.counts              since then, as JSON
//
// A request is what the block layer makes of neighbouring blocks, 256 KiB at most: so
// volumes count them whose bandwidth is not in the way. A flush takes the delay alone.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/hanwen/go-fuse/v2/fuse"

	"github.com/fastlabel/fastlabel/bench/server"
)

// The queue is the loop device's.
var options = fuse.MountOptions{
	Name: "slowdisk", FsName: "slowdisk", DirectMountStrict: true, MaxWrite: largest,
	MaxBackground: 1024, ExtraCapabilities: fuse.CAP_ASYNC_DIO,
}

func main() {
	size := flag.Int64("size", 20<<30, "of the disk, in bytes")
	log := flag.String("log", "", "file for a line a request: milliseconds since the pace was set, read or write, offset, bytes, how many are in flight")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: slowdisk [-size BYTES] [-log FILE] MOUNTPOINT")
		os.Exit(2)
	}
	if err := serve(*size, *log, flag.Arg(0)); err != nil {
		fmt.Fprintln(os.Stderr, "slowdisk:", err)
		os.Exit(1)
	}
}

func serve(size int64, log, mountpoint string) error {
	to := io.Discard
	if log != "" {
		f, err := os.Create(log)
		if err != nil {
			return err
		}
		defer f.Close()
		lines := bufio.NewWriter(f)
		defer lines.Flush()
		to = lines
	}
	d, err := newDisk(size, to)
	if err != nil {
		return err
	}
	return server.Run(d, mountpoint, &options)
}
