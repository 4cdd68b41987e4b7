// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// cell is what contestants are compared on.
type cell struct {
	FS      string `json:"fs"`
	Corpus  string `json:"corpus"`
	N       int    `json:"n"`
	State   string `json:"state"`
	Cold    bool   `json:"cold,omitempty"`
	Threads int    `json:"threads"`
}

func (c cell) String() string {
	state := c.State
	if c.Cold {
		state += " cold"
	}
	return fmt.Sprintf("%s %s %d %s -T %d", c.FS, c.Corpus, c.N, state, c.Threads)
}

// record is one run, a line of the results.
type record struct {
	Time   string `json:"time"`
	Commit string `json:"commit"`
	Kernel string `json:"kernel"`
	cell
	Entries    int    `json:"entries"` // with the root
	Contestant string `json:"contestant"`
	took
}

// bench is where contestants meet.
type bench struct {
	dir            string // of the programs that it builds, and of the filesystems
	fastlabel      string
	commit, kernel string
	results        *json.Encoder
	over           []error // cells in which fastlabel was over the limit
}

// program is one that newBench builds.
func (b *bench) program(name string) string { return filepath.Join(b.dir, name) }

// spec is the file by which setfiles gives that label to everything.
func (b *bench) spec(label string) string {
	return b.program("spec-" + strings.ReplaceAll(label, ":", "-"))
}

// build makes the programs, and the files for setfiles.
func (b *bench) build() error {
	for _, argv := range [][]string{
		{"gcc", "-O2", "-Wall", "-Wextra", "-Werror", "-o", b.program("floor"), "floor/floor.c", "-pthread"},
		{"gcc", "-O2", "-Wall", "-Wextra", "-Werror", "-o", b.program("start"), "floor/start.c"},
		{"go", "build", "-o", b.program("gochcon"), "./gochcon"},
	} {
		if err := run(argv...); err != nil {
			return err
		}
	}
	for _, label := range labels {
		if err := os.WriteFile(b.spec(label), []byte("/.*\t"+label+"\n"), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// measureAll measures all cells of the sweeps, and writes the results to a file.
func measureAll(ctx context.Context, sweeps []sweep, fastlabel, file string) error {
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	defer out.Close()
	b := &bench{results: json.NewEncoder(out)}
	if b.fastlabel, err = filepath.Abs(fastlabel); err != nil {
		return err
	}
	if b.dir, err = os.MkdirTemp("", "fastlabel-bench-"); err != nil {
		return err
	}
	defer os.RemoveAll(b.dir)
	if err := b.build(); err != nil {
		return err
	}
	// Without git, or elsewhere than in a checkout, the commit stays unknown.
	commit, _ := exec.Command("git", "describe", "--always", "--dirty").Output()
	kernel, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return err
	}
	b.commit, b.kernel = strings.TrimSpace(string(commit)), strings.TrimSpace(string(kernel))
	for _, s := range sweeps {
		for _, fs := range s.fs {
			for _, corpus := range s.corpora {
				for _, n := range s.n {
					if err := b.tree(ctx, s, fs, corpus, n); err != nil {
						return err
					}
				}
			}
		}
	}
	return errors.Join(b.over...)
}

// tree measures the cells that share a tree.
func (b *bench) tree(ctx context.Context, s sweep, fs, corpus string, n int) (err error) {
	f, err := b.newField(fs, s.size)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.remove()) }()
	if err := f.plant(corpus, n); err != nil {
		return err
	}
	for _, state := range s.states {
		for _, threads := range s.threads {
			c := cell{fs, corpus, n, state, s.cold, threads}
			fmt.Fprintln(os.Stderr, stamp(), c)
			if err := b.cell(ctx, f, c, s); err != nil {
				return fmt.Errorf("%s: %w", c, err)
			}
		}
	}
	return nil
}

// tries bounds the measurements of a cell over the limit. What else the machine has to
// do only adds to a time, and the more often, the nearer the least is to what it
// would be on a quiet one.
const tries = 3

// cell measures each contestant in turn, in every round, and again where fastlabel is
// over the limit.
func (b *bench) cell(ctx context.Context, f *field, c cell, s sweep) error {
	least := map[string]float64{} // of each contestant: the best time, or the fewest requests
	for try := 1; ; try++ {
		if err := b.rounds(ctx, f, c, s, least); err != nil {
			return err
		}
		ratio := least["fastlabel"] / best(least)
		if s.limit == 0 || ratio <= s.limit {
			return nil
		}
		if try == tries {
			what := "time"
			if c.Cold {
				what = "requests"
			}
			b.over = append(b.over, fmt.Errorf("%s: over the limit in %d tries: %.2f of the floor's %s, not %.2f", c, tries, ratio, what, s.limit))
			return nil
		}
	}
}

// best returns the least of the floors.
func best(least map[string]float64) float64 {
	floor, other := least[floors[0]], least[floors[1]]
	if other > 0 && (floor == 0 || other < floor) {
		return other
	}
	return floor
}

func (b *bench) rounds(ctx context.Context, f *field, c cell, s sweep, least map[string]float64) error {
	for round := range s.rounds {
		for k := range s.with {
			if ctx.Err() != nil {
				return errors.New("interrupted")
			}
			i := (k + round) % len(s.with)
			if round%2 == 1 {
				i = len(s.with) - 1 - i
			}
			who, name, err := find(s.with[i])
			if err != nil {
				return err
			}
			t, err := b.turn(f, c, who)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			cost := t.Wall
			if c.Cold {
				cost = float64(t.Requests)
			}
			if before, ran := least[name]; !ran || cost < before {
				least[name] = cost
			}
			if err := b.results.Encode(record{stamp(), b.commit, b.kernel, c, f.entries, name, t}); err != nil {
				return err
			}
		}
	}
	return nil
}

// turn is one run of one contestant, and the check that it did all of it.
func (b *bench) turn(f *field, c cell, who contestant) (took, error) {
	label, err := f.prepare(c)
	if err != nil {
		return took{}, err
	}
	var before, after int64
	if c.Cold {
		if before, err = f.requests(); err != nil {
			return took{}, err
		}
	}
	var t took
	if who.call != nil {
		t, err = call(who.call, label, c.Threads, f.volumes)
	} else {
		t, err = b.measure(who.old, who.argv(b, c, label, f.root))
	}
	if err != nil {
		return took{}, err
	}
	if c.Cold {
		if after, err = f.requests(); err != nil {
			return took{}, err
		}
		t.Requests = after - before
	}
	if label != labels[f.has] {
		f.has = 1 - f.has
	}
	return t, f.check(label)
}

func stamp() string { return time.Now().UTC().Format(time.RFC3339) }
