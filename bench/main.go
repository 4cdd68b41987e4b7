// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"golang.org/x/sys/unix"
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
			return runPlan(args[1:])
		case "table":
			return table(os.Stdout, args[1:])
		case "compare":
			return compare(os.Stdout, args[1:])
		case "plot":
			return plot(args[1:])
		}
	}
	return errors.New("usage: bench run [flags] | bench table FILE | bench compare NAME NAME FILE | bench plot DIR FILE")
}

// runPlan measures, and appends a JSON line a run to a file.
func runPlan(args []string) error {
	flags := flag.NewFlagSet("run", flag.ContinueOnError)
	plan := flags.String("plan", "quick", "one of "+strings.Join(names(plans), ", "))
	out := flags.String("o", "-", "file to append the results to")
	program := flags.String("fastlabel", "../bin/fastlabel", "the program to measure")
	dir := flags.String("dir", os.TempDir(), "where the filesystems' images lie")
	only := map[string]*string{}
	for _, name := range []string{"fs", "corpus", "state", "n", "threads", "with", "size", "limits", "beside"} {
		only[name] = flags.String(name, "", "in place of what the plan says; with commas between")
	}
	rounds := flags.Int("rounds", 0, "in place of what the plan says")
	cold := flags.Bool("cold", false, "caches dropped before each run")
	limit := flags.Float64("limit", 0, "fail if fastlabel's best time in a cell is above this many of the floor's, in three tries; 0: never")
	diskLimit := flags.Float64("disk-limit", 0, "the same by requests, of cells on a slowdisk")
	log := flags.String("disk-log", "", "file for each request to a slowdisk")
	contexts := flags.String("contexts", "", "file contexts for a system; those of Debian's policy if empty")
	calls := flags.Bool("calls", false, "one more round, in which system calls are counted")
	if err := flags.Parse(args); err != nil {
		return err
	}
	sweeps, ok := plans[*plan]
	if !ok {
		return fmt.Errorf("no such plan: %s", *plan)
	}
	sweeps = slices.Clone(sweeps)
	for i := range sweeps {
		if err := sweeps[i].narrow(only, *rounds, *cold); err != nil {
			return err
		}
	}
	var results io.Writer = os.Stdout
	if *out != "-" {
		f, err := os.OpenFile(*out, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
		if err != nil {
			return err
		}
		defer f.Close()
		results = f
	}
	work, err := os.MkdirTemp(*dir, "fastlabel-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	path, err := filepath.Abs(*program)
	if err != nil {
		return err
	}
	b, err := build(work, path)
	if err != nil {
		return err
	}
	b.log, b.contexts = *log, *contexts
	m := &meeting{binaries: b, dir: work, results: json.NewEncoder(results), limit: *limit, diskLimit: *diskLimit}
	m.commit, m.kernel = version(".")
	if *calls {
		if m.tracepoint, err = sysEnter(work); err != nil {
			return err
		}
	}
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, os.Interrupt, unix.SIGTERM)
	go func() { <-interrupted; m.stop.Store(true) }()
	if err := m.all(sweeps); err != nil {
		return err
	}
	if len(m.over) > 0 {
		return fmt.Errorf("over the limit in %d tries: %s", tries, strings.Join(m.over, "; "))
	}
	return nil
}

// narrow puts what the flags say in place of the plan's.
func (s *sweep) narrow(only map[string]*string, rounds int, cold bool) error {
	for name, to := range map[string]*[]string{"fs": &s.fs, "corpus": &s.corpora, "state": &s.states, "with": &s.with, "beside": &s.beside} {
		if *only[name] != "" {
			*to = strings.Split(*only[name], ",")
		}
	}
	for name, to := range map[string]*[]int{"n": &s.n, "threads": &s.threads, "limits": &s.limits} {
		if *only[name] == "" {
			continue
		}
		*to = nil
		for word := range strings.SplitSeq(*only[name], ",") {
			n, err := strconv.Atoi(word)
			if err != nil {
				return err
			}
			*to = append(*to, n)
		}
	}
	if *only["size"] != "" {
		s.size = *only["size"]
	}
	if rounds > 0 {
		s.rounds = rounds
	}
	s.cold = s.cold || cold
	return nil
}

// meeting is where contestants meet.
type meeting struct {
	binaries       *binaries
	dir            string
	results        *json.Encoder
	commit, kernel string
	tracepoint     int     // 0: calls are not counted
	caller         *caller // of the cell
	// limit is of the floor's time, diskLimit of its requests to a slowdisk.
	limit, diskLimit float64
	least            map[string]float64 // of the cell, of each contestant: the best time, or the fewest requests
	over             []string           // cells in which fastlabel was over the limit
	stop             atomic.Bool
}

var errStopped = errors.New("interrupted")

func (m *meeting) all(sweeps []sweep) error {
	for _, s := range sweeps {
		cells := s.cells()
		for len(cells) > 0 {
			end := 1
			for end < len(cells) && cells[0].shares(cells[end]) {
				end++
			}
			if err := m.tree(s, cells[:end]); err != nil {
				return err
			}
			cells = cells[end:]
		}
	}
	return nil
}

// tree measures the cells that share a tree.
func (m *meeting) tree(s sweep, cells []cell) error {
	f, err := newField(m.binaries, m.dir, cells[0])
	if f != nil {
		defer func() {
			if err := f.volume.remove(); err != nil {
				fmt.Fprintln(os.Stderr, "bench:", err)
			}
		}()
	}
	if err != nil {
		return err
	}
	for _, c := range cells {
		fmt.Fprintln(os.Stderr, stamp(), c)
		m.least = map[string]float64{}
		limit, cost := m.limit, "time"
		if c.Limit > 0 {
			limit, cost = m.diskLimit, "requests"
		}
		for try := 1; ; try++ {
			if err := m.cell(f, c, s.with, s.rounds); err != nil {
				return fmt.Errorf("%s: %w", c, err)
			}
			ratio := m.ratio()
			if limit == 0 || ratio <= limit {
				break
			}
			if try == tries {
				m.over = append(m.over, fmt.Sprintf("%s: %.2f of the floor's %s, not %.2f", c, ratio, cost, limit))
				break
			}
		}
	}
	return nil
}

// tries is how often a cell over the limit is measured. What else the machine has to
// do only adds to a time, and the more often, the nearer the least is to what it
// would be on a quiet one.
const tries = 3

// ratio is the least of fastlabel in the cell to that of the best floor.
func (m *meeting) ratio() float64 {
	floor := math.Inf(1)
	for name, t := range m.least {
		if base, _ := split(name); slices.Contains(floors, base) {
			floor = min(floor, t)
		}
	}
	return m.least["fastlabel"] / floor
}

// cell measures each contestant in turn, in every round.
func (m *meeting) cell(f *field, c cell, with []string, rounds int) (err error) {
	if slices.ContainsFunc(with, func(name string) bool { return contestants[name].call != "" }) {
		if m.caller, err = newCaller(f, c); m.caller != nil {
			defer func() { err = errors.Join(err, m.caller.close()) }()
		}
		if err != nil {
			return err
		}
	}
	for round := range rounds {
		for k := range with {
			i := (k + round) % len(with)
			if round%2 == 1 {
				i = len(with) - 1 - i
			}
			if err := m.turn(f, c, with[i], round, 0); err != nil {
				return err
			}
		}
	}
	if m.tracepoint == 0 {
		return nil
	}
	for _, name := range with {
		if contestants[name].call != "" {
			continue
		}
		if err := m.turn(f, c, name, rounds, m.tracepoint); err != nil {
			return err
		}
	}
	return nil
}

// turn is one run of one contestant.
func (m *meeting) turn(f *field, c cell, name string, round, tracepoint int) error {
	if m.stop.Load() {
		return errStopped
	}
	who, err := find(name)
	if err != nil {
		return err
	}
	label, err := f.prepare(c)
	if err != nil {
		return err
	}
	before, err := f.volume.served()
	if err != nil {
		return err
	}
	if err := f.volume.slow(c.Limit); err != nil {
		return err
	}
	var t took
	switch {
	case who.call != "":
		t, err = m.caller.measure(who, label, c.Threads, f.paths)
	case c.Beside != "":
		err = fmt.Errorf("only a call is measured beside %s", c.Beside)
	default:
		argv := who.argv(m.binaries, c, label, f.paths...)
		if c.Corpus == "system" {
			argv = m.binaries.asSystem(argv...)
		}
		t, err = measure(m.binaries, who, argv, tracepoint)
	}
	if err != nil {
		return err
	}
	after, err := f.volume.served()
	if err != nil {
		return err
	}
	t.Foreign = max(0, t.Foreign-(after-before))
	if t.Disk, err = f.volume.asked(c.Limit, t.Wall); err != nil {
		return err
	}
	f.done(label)
	cost := t.Wall
	if t.Disk != nil {
		cost = float64(t.Disk.Reads + t.Disk.Writes)
	}
	if least, ran := m.least[who.name]; tracepoint == 0 && (!ran || cost < least) {
		m.least[who.name] = cost
	}
	if round == 0 {
		if err := f.check(c, who, label); err != nil {
			return fmt.Errorf("%s: %w", who.name, err)
		}
	}
	return m.results.Encode(record{stamp(), m.commit, m.kernel, c, f.entries, who.name, round, t})
}

func names[V any](m map[string]V) []string {
	list := make([]string, 0, len(m))
	for name := range m {
		list = append(list, name)
	}
	slices.Sort(list)
	return list
}
