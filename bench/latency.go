// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// wait is what the reader went through beside one run.
type wait struct {
	Time    string  `json:"time"`
	Commit  string  `json:"commit"`
	Kernel  string  `json:"kernel"`
	Beside  string  `json:"beside"` // nothing, or the run's command line without PATH
	Disk    string  `json:"disk"`   // the scheduler of the disk that the image is on
	N       int     `json:"n"`      // entries of the volume
	Round   int     `json:"round"`
	Reads   int     `json:"reads"`
	Median  float64 `json:"median"` // of all reads, in milliseconds
	P99     float64 `json:"p99"`    // milliseconds
	Max     float64 `json:"max"`    // milliseconds
	Late99  float64 `json:"late99"` // the 99th percentile of the second half, in milliseconds
	Seconds float64 `json:"seconds"`
	Seen    int64   `json:"seen"`    // entries that the run came to
	Foreign float64 `json:"foreign"` // seconds of CPU of all programs, the run's own among them
}

// beside are the runs that the reader is measured beside, and for how long at most.
var beside = []struct {
	command string
	most    time.Duration
}{
	{"nothing", 6 * time.Second},
	{"fastlabel", 20 * time.Second},
	{"nice -n 19 ionice -c 3 fastlabel", 20 * time.Second},
	{"fastlabel --max-rate 20000", 8 * time.Second},
	{"nice -n 19 ionice -c 3 fastlabel --max-rate 20000", 8 * time.Second},
}

// latency measures how long a reader of the same disk waits beside fastlabel.
func latency(w io.Writer, args []string) error {
	flags := flag.NewFlagSet("latency", flag.ContinueOnError)
	out := flags.String("o", "", "file to append the results to")
	program := flags.String("fastlabel", "../bin/fastlabel", "the program to run")
	dir := flags.String("dir", os.TempDir(), "a directory on the disk")
	n := flags.Int("n", 1_000_000, "entries")
	corpus := flags.String("corpus", "realistic", "their shape")
	in := flags.String("in", "", "the directory itself, as an earlier run with -in left it, or new: planting a million files takes a minute")
	mib := flags.Int("mib", 1024, "size of the reader's file")
	rounds := flags.Int("rounds", 3, "how often each is measured, in turns; 0 only prints")
	shorter := flags.Float64("shorter", 1, "divides how long each is measured")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *out == "" || flags.NArg() > 0 {
		return errors.New("latency wants -o FILE, and nothing else")
	}
	if *rounds > 0 {
		b := &besides{n: *n, mib: *mib, corpus: *corpus, rounds: *rounds, shorter: *shorter}
		var err error
		if b.fastlabel, err = filepath.Abs(*program); err != nil {
			return err
		}
		if err := b.measure(*dir, *in, *out); err != nil {
			return err
		}
	}
	return tellWaits(w, *out)
}

// besides is one measurement.
type besides struct {
	fastlabel, corpus string
	n, mib, rounds    int
	shorter           float64

	reader *reader
	level  int // a category; not that of the run before, nor of an earlier measurement
}

func (b *besides) measure(dir, in, out string) (err error) {
	results, err := os.OpenFile(out, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	defer results.Close()
	work := in
	if in == "" {
		if work, err = os.MkdirTemp(dir, "fastlabel-latency-"); err != nil {
			return err
		}
		defer os.RemoveAll(work)
	}
	entries, root := b.n, filepath.Join(work, "tree")
	if _, err := os.Stat(root); err != nil {
		half := filepath.Join(work, "half")
		if err := os.MkdirAll(half, 0o755); err != nil {
			return err
		}
		if entries, err = plant(half, b.corpus, b.n, ""); err != nil {
			return err
		}
		if err := os.Rename(half, root); err != nil {
			return err
		}
	}
	foreground := filepath.Join(work, "foreground")
	if b.reader, err = newReader(foreground, b.mib); err != nil {
		return err
	}
	b.level = int(time.Now().Unix() % 1024)
	commit, kernel := version(".")
	for round := range b.rounds {
		for k := range beside {
			i := (k + round) % len(beside)
			r, err := b.one(root, foreground, beside[i].command, time.Duration(float64(beside[i].most)/b.shorter))
			if err != nil {
				return fmt.Errorf("beside %q: %w", beside[i].command, err)
			}
			r.Time, r.Commit, r.Kernel, r.Disk, r.N, r.Round = stamp(), commit, kernel, schedulerOf(work), entries, round
			fmt.Fprintf(os.Stderr, "%s %q: %d reads, 99th percentile %.2f ms, %d entries in %.1f s\n", r.Time, r.Beside, r.Reads, r.P99, r.Seen, r.Seconds)
			if err := json.NewEncoder(results).Encode(r); err != nil {
				return err
			}
		}
	}
	return nil
}

// one measures the reader beside one run, that begins with nothing cached. No entry
// has the label that the run gives.
func (b *besides) one(root, foreground, command string, most time.Duration) (r wait, err error) {
	if err := chill(); err != nil {
		return r, err
	}
	if err := b.reader.open(foreground); err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, b.reader.close()) }()
	before, err := userland()
	if err != nil {
		return r, err
	}
	over := make(chan struct{})
	var ran *ran
	if command != "nothing" {
		b.level = (b.level + 1) % 1024
		before, flags, _ := strings.Cut(command, "fastlabel")
		argv := append(strings.Fields(before), b.fastlabel, "--json", "-l", fmt.Sprintf("s0:c%d", b.level))
		argv = append(append(argv, strings.Fields(flags)...), root)
		if ran, err = start(over, argv[0], argv[1:]...); err != nil {
			return r, err
		}
	}
	began := time.Now()
	waits, err := b.reader.waits(over, most)
	r.Seconds = time.Since(began).Seconds()
	if ran != nil {
		seen, runErr := ran.stop()
		r.Seen, err = seen, errors.Join(err, runErr)
	}
	if err != nil {
		return r, err
	}
	if len(waits) == 0 {
		return r, errors.New("the run was over before the first read")
	}
	after, err := userland()
	if err != nil {
		return r, err
	}
	const ms = 1000
	r.Beside, r.Reads, r.Foreign = command, len(waits), after-before
	r.Median, r.P99, r.Max = ms*quantile(waits, 0.5), ms*quantile(waits, 0.99), ms*slices.Max(waits)
	r.Late99 = ms * quantile(waits[len(waits)/2:], 0.99)
	return r, nil
}

// chill has nothing in memory, and nothing on its way to the disk.
func chill() error {
	unix.Sync()
	return os.WriteFile("/proc/sys/vm/drop_caches", []byte("3"), 0)
}

// ran is a run of fastlabel that may be stopped.
type ran struct {
	cmd    *exec.Cmd
	over   chan struct{}
	stdout bytes.Buffer
}

// start starts it, and closes over when it ends.
func start(over chan struct{}, name string, args ...string) (*ran, error) {
	r := &ran{cmd: exec.Command(name, args...), over: over}
	r.cmd.Stdout, r.cmd.Stderr = &r.stdout, os.Stderr
	if err := r.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(over)
		_ = r.cmd.Wait() // stop looks at the exit code
	}()
	return r, nil
}

// stop ends it, if it is not over, and returns how many entries it came to.
func (r *ran) stop() (seen int64, err error) {
	_ = r.cmd.Process.Signal(unix.SIGINT) // it may be over
	<-r.over
	if code := r.cmd.ProcessState.ExitCode(); code != 0 && code != 130 {
		return 0, fmt.Errorf("%v: exit %d", r.cmd.Args, code)
	}
	lines := bufio.NewScanner(&r.stdout)
	for lines.Scan() {
		var line struct {
			Type string `json:"message_type"`
			Seen int64  `json:"seen"`
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			return 0, err
		}
		if line.Type == "summary" {
			return line.Seen, nil
		}
	}
	return 0, fmt.Errorf("%v: no summary", r.cmd.Args)
}

// tellWaits writes the medians of all runs in the file as Markdown.
func tellWaits(w io.Writer, file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	rows := map[string][]wait{}
	for n, line := range bytes.Split(bytes.TrimSpace(text), []byte("\n")) {
		var r wait
		if err := json.Unmarshal(line, &r); err != nil {
			return fmt.Errorf("%s:%d: %w", file, n+1, err)
		}
		rows[r.Beside] = append(rows[r.Beside], r)
	}
	fmt.Fprintln(w, "| beside | rounds | median ms | 99th percentile ms | its second half | longest ms | entries/s |")
	fmt.Fprintln(w, "|---|---|---|---|---|---|---|")
	for _, b := range beside {
		all := rows[b.command]
		if len(all) == 0 {
			continue
		}
		of := func(value func(wait) float64) float64 {
			var values []float64
			for _, r := range all {
				values = append(values, value(r))
			}
			return quantile(values, 0.5)
		}
		fmt.Fprintf(w, "| %s | %d | %.2f | %.2f | %.2f | %.1f | %.0f |\n", b.command, len(all),
			of(func(r wait) float64 { return r.Median }), of(func(r wait) float64 { return r.P99 }),
			of(func(r wait) float64 { return r.Late99 }), of(func(r wait) float64 { return r.Max }),
			of(func(r wait) float64 { return float64(r.Seen) / r.Seconds }))
	}
	return nil
}
