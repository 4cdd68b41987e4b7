// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
)

// contestant is a command that gives a tree a label. The first word may be @,
// for a program of this directory.
type contestant struct {
	name string
	argv func(b *binaries, c cell, root, label string) []string
	// old is whether it must believe that the kernel has no setxattrat.
	old bool
}

// binaries are the programs that were built.
type binaries struct {
	fastlabel, floor, start, rivals, slowfs, slowdisk string
	// log is where a slowdisk writes each request; "": nowhere.
	log string
	// specs is where setfiles finds "everything has this label".
	specs string
}

// contestants, by name.
var contestants = map[string]contestant{
	"fastlabel":           {argv: fastlabel()},
	"fastlabel-nosync":    {argv: fastlabel("--no-sync")},
	"fastlabel-exact":     {argv: fastlabel("--exact")},
	"fastlabel-fchdir":    {argv: fastlabel(), old: true},
	"fastlabel-auto":      {argv: fastlabel("-T", "0")},
	"fastlabel-unchanged": {argv: fastlabel("--skip", "unchanged")},
	"fastlabel-root":      {argv: fastlabel("--skip", "root")},
	// The shell takes a millisecond, and the record has a new file each time.
	"fastlabel-record": {argv: func(b *binaries, c cell, root, label string) []string {
		file := filepath.Join(b.specs, "record")
		return append([]string{"sh", "-c", `rm -f "$0" && exec "$@"`, file}, fastlabel("--record", file)(b, c, root, label)...)
	}},

	"floor-dir":        {argv: floor("dir", "at", "")},
	"floor-inode":      {argv: floor("inode", "at", "")},
	"floor-dir-mend":   {argv: floor("dir", "at", "mend")},
	"floor-inode-mend": {argv: floor("inode", "at", "mend")},
	// The least that a record can take: of a few thousand entries a thread that wait
	// for a disk nothing is in the processor's caches when their turn comes.
	"floor-dir-later":   {argv: floor("dir", "at", "mend", "-l", "4096")},
	"floor-inode-later": {argv: floor("inode", "at", "mend", "-l", "4096")},
	// The filter that hides setxattrat has its price a call: the floor of
	// such a kernel runs under the same.
	"floor-dir-fchdir":   {argv: floor("dir", "fchdir", ""), old: true},
	"floor-inode-fchdir": {argv: floor("inode", "fchdir", ""), old: true},

	"go-selinux": {argv: rival("go-selinux")},
	// Waiting for the disk as fastlabel does.
	"go-selinux-sync": {argv: func(b *binaries, c cell, root, label string) []string {
		argv := rival("go-selinux")(b, c, root, label)
		return append([]string{"sh", "-c", `"$0" "$@" && sync -f "$2"`}, argv...)
	}},
	"godirwalk": {argv: rival("godirwalk")},
	"chcon": {argv: func(_ *binaries, _ cell, root, label string) []string {
		return []string{"chcon", "-R", "-h", label, root}
	}},
	"setfiles": {argv: func(b *binaries, _ cell, root, label string) []string {
		return []string{"setfiles", "-F", "-T", "0", b.spec(label), root}
	}},
	"find": {argv: func(_ *binaries, _ cell, root, label string) []string {
		return []string{"find", root, "-exec", "setfattr", "-h", "-n", "security.selinux", "-v", label, "{}", "+"}
	}},
}

// peers are the contestants that users have today.
var peers = []string{"go-selinux", "godirwalk", "chcon", "setfiles", "find"}

func fastlabel(flags ...string) func(*binaries, cell, string, string) []string {
	return func(b *binaries, c cell, root, label string) []string {
		argv := []string{b.fastlabel, "-q", "-T", strconv.Itoa(c.Threads)}
		return append(append(argv, flags...), "--label", label, root)
	}
}

func floor(order, way, mode string, more ...string) func(*binaries, cell, string, string) []string {
	return func(b *binaries, c cell, root, label string) []string {
		m := mode
		switch {
		case m != "":
		case c.State == "wrong":
			m = "write"
		default:
			m = "mend"
		}
		threads := c.Threads
		if threads == 0 {
			threads = runtime.NumCPU()
		}
		argv := []string{b.floor, "-s", "-t", strconv.Itoa(threads), "-m", m, "-o", order, "-w", way}
		return append(append(argv, more...), root, label)
	}
}

func rival(name string) func(*binaries, cell, string, string) []string {
	return func(b *binaries, _ cell, root, label string) []string {
		return []string{b.rivals, name, root, label}
	}
}

// find returns the contestant of that name. fastlabel@PATH is fastlabel, as
// the program at PATH; results name it by the last word of that.
func find(name string) (contestant, error) {
	if c, ok := contestants[name]; ok {
		c.name = name
		return c, nil
	}
	if program, ok := strings.CutPrefix(name, "fastlabel@"); ok {
		return contestant{name: "fastlabel@" + filepath.Base(program), argv: func(b *binaries, c cell, root, label string) []string {
			other := *b
			other.fastlabel = program
			return fastlabel()(&other, c, root, label)
		}}, nil
	}
	return contestant{}, fmt.Errorf("no such contestant: %s", name)
}
