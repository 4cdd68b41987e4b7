// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"github.com/opencontainers/selinux/go-selinux"

	"github.com/fastlabel/fastlabel/relabel"
)

// contestant gives trees a label: by a command, or by a call within bench. A call of a
// small volume takes less than the start of a program.
type contestant struct {
	argv argv
	call func(path, label string, recurse bool) error
	// old is whether it must believe that the kernel has no setxattrat.
	old bool
	// base names what it is compared with, the better of these; nil: the floors.
	base []string
}

// argv returns a command.
type argv func(b *bench, c cell, label, path string) []string

var oldFloors = []string{"floor-dir-fchdir", "floor-inode-fchdir"}

// contestants, by name.
var contestants = map[string]contestant{
	"fastlabel":        {argv: fastlabel},
	"fastlabel-fchdir": {argv: fastlabel, old: true, base: oldFloors},
	// Where no control groups are to be seen it takes no memory beyond what it needs.
	"fastlabel-small": {argv: func(b *bench, c cell, label, path string) []string {
		return append([]string{"unshare", "-m", "sh", "-c", `mount -t tmpfs none /sys/fs/cgroup && exec "$0" "$@"`}, fastlabel(b, c, label, path)...)
	}},

	"floor-dir":   {argv: floor("dir", "at")},
	"floor-inode": {argv: floor("inode", "at")},
	// The filter that hides setxattrat has its price a call: the floor of
	// such a kernel runs under the same.
	"floor-dir-fchdir":   {argv: floor("dir", "fchdir"), old: true, base: oldFloors},
	"floor-inode-fchdir": {argv: floor("inode", "fchdir"), old: true, base: oldFloors},

	"go-selinux": {argv: func(b *bench, _ cell, label, path string) []string {
		return []string{b.program("gochcon"), label, path}
	}},
	"chcon": {argv: func(_ *bench, _ cell, label, path string) []string {
		return []string{"chcon", "-R", "-h", label, path}
	}},
	"setfiles": {argv: func(b *bench, _ cell, label, path string) []string {
		return []string{"setfiles", "-F", "-T", "0", b.spec(label), path}
	}},

	// The floor is a program, which has to start: calls are compared with go-selinux's.
	"dropin-call":     {call: relabel.Chcon, base: []string{"go-selinux-call"}},
	"go-selinux-call": {call: selinux.Chcon, base: []string{"go-selinux-call"}},
}

func fastlabel(b *bench, c cell, label, path string) []string {
	return []string{b.fastlabel, "-q", "-T", strconv.Itoa(c.Threads), "--label", label, path}
}

func floor(order, way string) argv {
	return func(b *bench, c cell, label, path string) []string {
		mode, threads := "mend", c.Threads
		if c.State == "wrong" {
			mode = "write"
		}
		if threads == 0 {
			threads = runtime.NumCPU()
		}
		argv := []string{b.program("floor"), "-t", strconv.Itoa(threads), "-m", mode, "-o", order, "-w", way}
		if c.FS == "btrfs" { // there fastlabel waits too
			argv = append(argv, "-s")
		}
		return append(argv, path, label)
	}
}

// find returns the contestant of that name. fastlabel@PATH is the program at PATH;
// results have the last word of that.
func find(name string) (c contestant, as string, err error) {
	if program, ok := strings.CutPrefix(name, "fastlabel@"); ok {
		return contestant{argv: func(b *bench, c cell, label, path string) []string {
			return append([]string{program}, fastlabel(b, c, label, path)[1:]...)
		}}, "fastlabel@" + filepath.Base(program), nil
	}
	c, ok := contestants[name]
	if !ok {
		err = fmt.Errorf("no such contestant: %s", name)
	}
	return c, name, err
}
