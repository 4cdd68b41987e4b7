// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// contestant is a command that gives trees a label. The first word may be @,
// for a program of this directory.
type contestant struct {
	name string
	argv func(b *binaries, c cell, label string, paths ...string) []string
	// old is whether it must believe that the kernel has no setxattrat.
	old bool
	// call is what rivals calls it, if it is measured there by the call; it has no argv.
	call string
}

// binaries are the programs that were built.
type binaries struct {
	fastlabel, floor, start, rivals, slowfs, slowdisk string
	// log is where a slowdisk writes each request; "": nowhere.
	log string
	// specs is where setfiles finds "everything has this label".
	specs string
	// contexts are those of a policy, for a system; enabled is preloaded for restorecon.
	contexts, enabled string
}

// contestants, by name.
var contestants = map[string]contestant{
	"fastlabel":        {argv: fastlabel()},
	"fastlabel-exact":  {argv: fastlabel("--exact")},
	"fastlabel-fchdir": {argv: fastlabel(), old: true},
	// Where no control groups are to be seen it takes no memory beyond what it needs.
	"fastlabel-small": {argv: func(b *binaries, c cell, label string, paths ...string) []string {
		return append([]string{"unshare", "-m", "sh", "-c", `mount -t tmpfs none /sys/fs/cgroup && exec "$0" "$@"`}, fastlabel()(b, c, label, paths...)...)
	}},

	"floor-dir":        {argv: floor("dir", "at", "")},
	"floor-inode":      {argv: floor("inode", "at", "")},
	"floor-dir-mend":   {argv: floor("dir", "at", "mend")},
	"floor-inode-mend": {argv: floor("inode", "at", "mend")},
	// The filter that hides setxattrat has its price a call: the floor of
	// such a kernel runs under the same.
	"floor-dir-fchdir":   {argv: floor("dir", "fchdir", ""), old: true},
	"floor-inode-fchdir": {argv: floor("inode", "fchdir", ""), old: true},

	"go-selinux":      {argv: rival("go-selinux")},
	"go-selinux-call": {call: "go-selinux"},
	"godirwalk":       {argv: rival("godirwalk")},
	"dropin-call":     {call: "dropin"},
	"chcon": {argv: func(_ *binaries, _ cell, label string, paths ...string) []string {
		return append([]string{"chcon", "-R", "-h", label}, paths...)
	}},
	"setfiles": {argv: func(b *binaries, c cell, label string, paths ...string) []string {
		if c.Corpus == "system" {
			return append([]string{"setfiles", "-T", "0", contexts}, paths...)
		}
		return append([]string{"setfiles", "-F", "-T", "0", b.spec(label)}, paths...)
	}},
	// Of a system alone.
	"restorecon": {argv: func(b *binaries, _ cell, _ string, paths ...string) []string {
		return append([]string{"env", "LD_PRELOAD=" + b.enabled, "restorecon", "-R", "-m", "-T", "0"}, paths...)
	}},
}

// peers are the contestants that users have today.
var peers = []string{"go-selinux", "godirwalk", "chcon", "setfiles", "restorecon"}

func fastlabel(flags ...string) func(*binaries, cell, string, ...string) []string {
	return func(b *binaries, c cell, label string, paths ...string) []string {
		argv := []string{b.fastlabel, "-q", "-T", strconv.Itoa(c.Threads)}
		if c.Corpus == "system" {
			return slices.Concat(argv, []string{"restorecon", "-R"}, flags, paths)
		}
		return slices.Concat(argv, flags, []string{"--label", label}, paths)
	}
}

func floor(order, way, mode string, more ...string) func(*binaries, cell, string, ...string) []string {
	return func(b *binaries, c cell, label string, paths ...string) []string {
		m := mode
		switch {
		case c.Corpus == "system" && c.State == "right": // its labels differ
			m = "count"
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
		argv := []string{b.floor, "-t", strconv.Itoa(threads), "-m", m, "-o", order, "-w", way}
		if c.FS == "btrfs" { // there fastlabel waits too
			argv = append(argv, "-s")
		}
		return append(append(argv, more...), paths[0], label)
	}
}

func rival(words ...string) func(*binaries, cell, string, ...string) []string {
	return func(b *binaries, _ cell, label string, paths ...string) []string {
		return slices.Concat([]string{b.rivals}, words, []string{label}, paths)
	}
}

// find returns the contestant of that name. NAME-N is NAME with N threads, whatever the
// cell has. fastlabel@PATH is fastlabel, as the program at PATH; results name it by the
// last word of that.
func find(name string) (contestant, error) {
	if c, ok := contestants[name]; ok {
		c.name = name
		return c, nil
	}
	if base, threads := split(name); threads > 0 {
		c, err := find(base)
		argv := c.argv
		c.name, c.argv = name, func(b *binaries, in cell, label string, paths ...string) []string {
			in.Threads = threads
			return argv(b, in, label, paths...)
		}
		return c, err
	}
	if program, ok := strings.CutPrefix(name, "fastlabel@"); ok {
		return contestant{name: "fastlabel@" + filepath.Base(program), argv: func(b *binaries, c cell, label string, paths ...string) []string {
			other := *b
			other.fastlabel = program
			return fastlabel()(&other, c, label, paths...)
		}}, nil
	}
	return contestant{}, fmt.Errorf("no such contestant: %s", name)
}

// split takes NAME-N apart; threads is 0 where there is no N.
func split(name string) (base string, threads int) {
	if i := strings.LastIndexByte(name, '-'); i > 0 && !strings.Contains(name, "@") {
		if n, err := strconv.Atoi(name[i+1:]); err == nil && n > 0 {
			return name[:i], n
		}
	}
	return name, 0
}
