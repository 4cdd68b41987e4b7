// SPDX-License-Identifier: Apache-2.0

// Command bench compares fastlabel with the floor and with its peers, on real
// filesystems, in turns.
//
//	plan.go       the plans: which cells, and which contestants each
//	corpus.go     trees, made from a seed
//	contestant.go the contestants, and their command lines
//	field.go      a tree on a scratch filesystem: its states, and the check after a run
//	run.go        a plan: every contestant in turn
//	measure.go    one run of one contestant, and what it took
//	table.go      results, medians, and ratios to the floor and to the peers
//	plot.go       charts: cost against size and against threads
//	ab.sh         two commits in turns
//	floor/        the floor, in C, and the program that starts contestants
//	gochcon/      go-selinux's Chcon as a command
//	daemon/       a runtime's day: many clients, deadlines, unmounts
//
// A cell is a filesystem, a corpus, a state and a number of threads. In each round
// every contestant of the cell runs once: rounds begin with another contestant each,
// and every other round goes backwards, so that nobody always follows the same one.
// The filesystem's journal is at rest before each run. What counts is the ratio of
// medians within a cell; seconds only give the scale.
//
// The floor is the better of two programs without any safety, one that goes by the
// directory's order and one that goes by inode number. On btrfs, where fastlabel waits
// for a transaction, both end with a syncfs, if anything was written. Neither trusts a
// filesystem to fill a buffer: like fastlabel they ask for a directory's end.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

func main() {
	if err := command(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func command(args []string) error {
	if len(args) > 0 {
		switch args[0] {
		case "run":
			return isolate(args[1:])
		case "isolated":
			return runPlan(args[1:])
		case "table":
			return table(os.Stdout, args[1:])
		case "plot":
			return plot(args[1:])
		}
	}
	return errors.New("usage: bench run [-plan PLAN] [-o FILE] | bench table [-base NAME] FILE | bench plot DIR FILE")
}

// isolate runs the plan in a mount namespace of its own. A namespace that another program
// makes would otherwise have copies of the mounts: a filesystem that is to be cold would
// stay mounted.
func isolate(args []string) error {
	unshare, err := exec.LookPath("unshare")
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	return syscall.Exec(unshare, append([]string{"unshare", "-m", self, "isolated"}, args...), os.Environ())
}

// runPlan measures, and writes a JSON line a run to a file.
func runPlan(args []string) error {
	flags := flag.NewFlagSet("run", flag.ContinueOnError)
	plan := flags.String("plan", "quick", "one of "+strings.Join(slices.Sorted(maps.Keys(plans)), ", "))
	out := flags.String("o", "/dev/stdout", "file for the results")
	program := flags.String("fastlabel", "../bin/fastlabel", "the program to measure")
	var changes []func(*sweep)
	words := func(name string, of func(*sweep) *[]string) {
		flags.Func(name, "in place of what the plan says, with commas between", func(value string) error {
			changes = append(changes, func(s *sweep) { *of(s) = strings.Split(value, ",") })
			return nil
		})
	}
	words("fs", func(s *sweep) *[]string { return &s.fs })
	words("corpus", func(s *sweep) *[]string { return &s.corpora })
	words("state", func(s *sweep) *[]string { return &s.states })
	words("with", func(s *sweep) *[]string { return &s.with })
	numbers := func(name string, of func(*sweep) *[]int) {
		flags.Func(name, "in place of what the plan says, with commas between", func(value string) error {
			var list []int
			for word := range strings.SplitSeq(value, ",") {
				n, err := strconv.Atoi(word)
				if err != nil {
					return err
				}
				list = append(list, n)
			}
			changes = append(changes, func(s *sweep) { *of(s) = list })
			return nil
		})
	}
	numbers("n", func(s *sweep) *[]int { return &s.n })
	numbers("threads", func(s *sweep) *[]int { return &s.threads })
	rounds := flags.Int("rounds", 0, "in place of what the plan says")
	if err := flags.Parse(args); err != nil {
		return err
	}
	sweeps, ok := plans[*plan]
	if !ok {
		return fmt.Errorf("no such plan: %s", *plan)
	}
	sweeps = slices.Clone(sweeps)
	for i := range sweeps {
		for _, change := range changes {
			change(&sweeps[i])
		}
		if *rounds > 0 {
			sweeps[i].rounds = *rounds
		}
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return measureAll(ctx, sweeps, *program, *out)
}
