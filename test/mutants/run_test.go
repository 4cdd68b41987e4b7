// SPDX-License-Identifier: Apache-2.0

//go:build mutants

package mutants

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// soundLimit is for a named test on sound source, with other work beside it.
const soundLimit = 5 * time.Minute

// TestMutants builds each mutant and runs the test that it names, which must fail.
// A mutant has survived if that test passes, skips or does not run, and if it
// does not build. A panic and a limit that is reached count as a failure only if
// the named test was running. Before that the test must pass on sound source,
// else its failure would say nothing.
//
// What only test/system/torture or the machine can show is left to them. With MUTANTS=I/N every
// Nth mutant is built, from the Ith on, which counts from 0.
func TestMutants(t *testing.T) {
	part, parts := 0, 1
	if of := os.Getenv("MUTANTS"); of != "" {
		if _, err := fmt.Sscanf(of, "%d/%d", &part, &parts); err != nil || part < 0 || part >= parts {
			t.Fatalf("MUTANTS=%s: not I/N with I from 0 to N-1", of)
		}
	}
	bench := &bench{dir: t.TempDir()}
	var ran atomic.Int32
	t.Cleanup(func() {
		if t.Logf("%d mutants", ran.Load()); ran.Load() == 0 {
			t.Error("no mutant has that name")
		}
	})
	for i, m := range All() {
		if _, dir := m.Test(); i%parts != part || m.By == "" || strings.HasPrefix(dir, "test/") {
			continue
		}
		t.Run(m.Name, func(t *testing.T) {
			t.Parallel()
			ran.Add(1)
			test, dir := m.Test()
			took, err := bench.passes(test, dir)
			if err != nil {
				t.Fatal(err)
			}
			own := t.TempDir()
			overlay, err := m.Overlay(root, own)
			if err != nil {
				t.Fatal(err)
			}
			program := filepath.Join(own, "program")
			if err := build(dir, program, "-overlay", overlay); err != nil {
				t.Fatalf("it does not build: %v", err)
			}
			begin := time.Now()
			out, failed := attempt(program, dir, test, 20*time.Second+10*took, "GOFLAGS="+os.Getenv("GOFLAGS")+" -overlay="+overlay)
			how := death(out, test)
			if !failed || how == "" {
				t.Fatalf("SURVIVED: %s; %s does not fail in %s:\n%s", m.Breaks, test, dir, tail(out))
			}
			t.Logf("dead: %s %s, %.1f s", test, how, time.Since(begin).Seconds())
		})
	}
}

// bench has what the mutants share: for each package a func() (string, error), which builds
// its test program once, and for each test and package what runs it on sound source once.
type bench struct {
	dir             string
	programs, sound sync.Map
}

// passes runs a test on sound source, once, and says how long that takes.
func (b *bench) passes(test, dir string) (time.Duration, error) {
	program, _ := b.programs.LoadOrStore(dir, sync.OnceValues(func() (string, error) {
		file := filepath.Join(b.dir, strings.ReplaceAll(dir, "/", "_"))
		return file, build(dir, file)
	}))
	key := test + " in " + dir
	sound, _ := b.sound.LoadOrStore(key, sync.OnceValues(func() (time.Duration, error) {
		file, err := program.(func() (string, error))()
		if err != nil {
			return 0, fmt.Errorf("%s does not build without a mutant: %w", dir, err)
		}
		begin := time.Now()
		out, failed := attempt(file, dir, test, soundLimit)
		if failed || !strings.Contains(out, "--- PASS: "+test+" (") || strings.Contains(out, "--- SKIP: ") {
			return 0, fmt.Errorf("%s does not pass without a mutant:\n%s", key, tail(out))
		}
		return time.Since(begin), nil
	}))
	return sound.(func() (time.Duration, error))()
}

// raced says that the tests of a package show what they are for under the race
// detector, three times over.
func raced(dir string) bool { return dir == "internal/steal" }

// build builds the test program of a package.
func build(dir, program string, args ...string) error {
	args = append([]string{"test", "-c", "-ldflags", "-s -w", "-o", program}, args...)
	cgo := "CGO_ENABLED=0"
	if raced(dir) {
		args, cgo = append(args, "-race"), "CGO_ENABLED=1"
	}
	cmd := exec.Command("go", append(args, "./"+dir)...)
	cmd.Dir, cmd.Env = root, append(os.Environ(), cgo)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	return nil
}

// attempt runs one test of the program, in its package's directory. A test that
// builds the command builds the mutant: env says so.
func attempt(program, dir, test string, limit time.Duration, env ...string) (out string, failed bool) {
	// The program ends itself at its limit, and says which tests were running.
	ctx, cancel := context.WithTimeout(context.Background(), limit+time.Minute)
	defer cancel()
	count := 1
	if raced(dir) {
		count = 3
	}
	cmd := exec.CommandContext(
		ctx, program, "-test.v=test2json", "-test.failfast", fmt.Sprint("-test.count=", count), fmt.Sprint("-test.timeout=", limit),
		"-test.run=^"+strings.ReplaceAll(test, "/", "$/^")+"$",
	)
	cmd.Dir, cmd.Env = filepath.Join(root, dir), append(os.Environ(), env...)
	cmd.WaitDelay = time.Minute
	text, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return fmt.Sprintf("%s\n%v", text, err), false
	}
	return string(text), err != nil
}

// death says how the test failed; "" if it did not.
func death(out, test string) string {
	// What the testing package itself writes follows this byte.
	const mark = "\x16"
	begun := strings.LastIndex(out, mark+"=== RUN   "+test+"\n")
	ends := regexp.MustCompile(mark + ` *--- (PASS|FAIL|SKIP): ` + regexp.QuoteMeta(test) + ` \(`)
	running, fails := begun >= 0, false
	for _, at := range ends.FindAllStringSubmatchIndex(out, -1) {
		running = running && at[0] < begun
		fails = fails || out[at[2]:at[3]] == "FAIL"
	}
	switch {
	case running && strings.Contains(out, "panic: test timed out after "):
		return "is still running at its limit"
	case running && (strings.Contains(out, "panic: ") || strings.Contains(out, "fatal error: ")):
		return "panics"
	case fails:
		return "fails"
	}
	return ""
}

// tail is the end of what a program wrote.
func tail(out string) string {
	out = strings.ReplaceAll(out, "\x16", "")
	return out[max(0, len(out)-4000):]
}
