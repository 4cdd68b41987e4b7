// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"cmp"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
)

// promiseEnv lists, with commas, what the machine can do: see treetest.Need.
const promiseEnv = "FASTLABEL_PROMISE"

// suite is a run of several passes.
type suite struct {
	out      *bufio.Writer
	verbose  bool
	more     []string // flags for go test
	promised string
	tallies  []*tally
	stopped  atomic.Pointer[string]
}

// lack is a line of treetest's TestPromise.
var lack = regexp.MustCompile(`this machine lacks (\S+): (.*)`)

// promise says in a line what was promised and is not there.
func (s *suite) promise(adapt bool) {
	if s.promised = os.Getenv(promiseEnv); s.promised == "" {
		return
	}
	look := exec.Command("go", "test", "-count=1", "-run=^TestPromise$", "./test/treetest")
	look.Env = append(os.Environ(), "CGO_ENABLED=0")
	said, _ := look.CombinedOutput() // if it does not build, a pass will say so
	lacks := map[string][]string{}   // what, by why
	kept := strings.Split(s.promised, ",")
	for _, m := range lack.FindAllStringSubmatch(string(said), -1) {
		lacks[m[2]] = append(lacks[m[2]], m[1])
		kept = slices.DeleteFunc(kept, func(what string) bool { return what == m[1] })
	}
	if len(lacks) == 0 {
		return
	}
	var all []string
	for _, why := range slices.Sorted(maps.Keys(lacks)) {
		all = append(all, fmt.Sprintf("%s (%s)", strings.Join(lacks[why], ", "), why))
	}
	left := cmp.Or(strings.Join(kept, ","), "nothing")
	fmt.Fprintf(s.out, "suite: this machine lacks %s; tests that need it ", strings.Join(all, "; "))
	if adapt {
		fmt.Fprintf(s.out, "SKIP, and with PROMISE=%s they fail\n", s.promised)
		s.promised = left
	} else {
		fmt.Fprintf(s.out, "FAIL, and with PROMISE=%s they skip\n", left)
	}
}

// sum prints why tests skipped, which failed, and the counts; it gives the exit code.
func (s *suite) sum() int {
	var passed, failed, skipped int
	reasons := map[string][]string{}
	for _, t := range s.tallies {
		passed, failed, skipped = passed+t.passed, failed+t.failed, skipped+t.skipped
		for why, tests := range t.reasons {
			reasons[why] = append(reasons[why], tests...)
		}
	}
	for _, why := range slices.Sorted(maps.Keys(reasons)) {
		tests := slices.Compact(slices.Sorted(slices.Values(reasons[why])))
		more := ""
		if n := len(tests) - 8; n > 0 && !s.verbose {
			tests, more = tests[:8], fmt.Sprintf(" and %d more", n)
		}
		fmt.Fprintf(s.out, "SKIPPED: %s (%s%s)\n", why, strings.Join(tests, ", "), more)
	}
	for _, t := range s.tallies {
		for _, name := range t.failures {
			fmt.Fprintf(s.out, "FAILED: %s: %s\n", t.name, name)
		}
	}
	if why := s.stopped.Load(); why != nil {
		failed++
		fmt.Fprintf(s.out, "FAILED: %s before all was run\n", *why)
	} else if passed+failed == 0 {
		failed++
		fmt.Fprintln(s.out, "FAILED: nothing was run")
	}
	fmt.Fprintf(s.out, "%d passed, %d failed, %d skipped\n", passed, failed, skipped)
	if failed > 0 {
		return 1
	}
	return 0
}
