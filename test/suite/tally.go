// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
)

// event is a line of go test -json; see go doc test2json.
type event struct {
	Action, Package, ImportPath, Test, Output, FailedBuild string
}

// tally reads the events of one go test.
type tally struct {
	name                    string
	out                     *bufio.Writer
	verbose                 bool
	passed, failed, skipped int

	failures []string            // their names
	reasons  map[string][]string // why tests skipped, and which
	running  map[string][]string // what each test that has not ended printed; of a package "pkg "
	builds   map[string][]string // what compilers said, by package
	broken   map[string]int      // failed tests, by package
}

func newTally(name string, out *bufio.Writer, verbose bool) *tally {
	return &tally{
		name: name, out: out, verbose: verbose, reasons: map[string][]string{}, running: map[string][]string{},
		builds: map[string][]string{}, broken: map[string]int{},
	}
}

// read reads to the end. What is no event is printed as it is.
func (t *tally) read(r io.Reader) {
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadBytes('\n')
		var e event
		switch {
		case len(line) == 0:
		case !bytes.HasPrefix(line, []byte("{")) || json.Unmarshal(line, &e) != nil:
			t.print(string(line))
		default:
			t.event(e)
		}
		if err != nil {
			return
		}
		if lines.Buffered() == 0 {
			t.out.Flush()
		}
	}
}

func (t *tally) print(text string) { fmt.Fprint(t.out, text) }

func (t *tally) event(e event) {
	id := e.Package + " " + e.Test
	if e.Action == "output" && t.verbose {
		t.print(e.Output)
	}
	switch e.Action {
	case "build-output":
		t.builds[e.ImportPath] = append(t.builds[e.ImportPath], e.Output)
		t.print(e.Output)
	case "run":
		t.running[id] = nil
	case "output":
		t.running[id] = append(t.running[id], e.Output)
	case "pass", "fail", "skip":
		said := t.running[id]
		delete(t.running, id)
		if e.Test == "" {
			t.program(e, said)
			return
		}
		switch e.Action {
		case "pass":
			t.passed++
		case "skip":
			t.skipped++
			why := reason(said)
			t.reasons[why] = append(t.reasons[why], short(id))
		case "fail":
			t.broken[e.Package]++
			t.failed++
			t.failures = append(t.failures, short(id))
			t.show(said)
		}
	}
}

// program is the end of a package. Tests that have not ended were killed with it.
func (t *tally) program(e event, said []string) {
	for id, text := range t.running {
		if strings.HasPrefix(id, e.Package+" ") {
			delete(t.running, id)
			t.broken[e.Package]++
			t.fail(short(id), "it was running when its program ended")
			t.show(text)
		}
	}
	if e.Action == "fail" && t.broken[e.Package] == 0 {
		why := "its program failed, and none of its tests"
		if e.FailedBuild != "" {
			why = "it does not build"
		}
		t.fail(short(e.Package), why)
	}
	if e.Action == "fail" {
		t.show(said)
	} else if last := len(said) - 1; last >= 0 && strings.HasPrefix(said[last], "ok") {
		t.show(said[last:])
	}
}

// fail counts what is a failure though no test says so. The line is like those of
// go test, for those who count them.
func (t *tally) fail(name, why string) {
	t.failed++
	t.failures = append(t.failures, name)
	fmt.Fprintf(t.out, "--- FAIL: %s (%s)\n", name, why)
}

func (t *tally) show(said []string) {
	if !t.verbose {
		t.print(strings.Join(said, ""))
	}
}

// close counts what is still running when go test has ended, or was killed.
func (t *tally) close() {
	for id, said := range t.running {
		if t.show(said); strings.HasSuffix(id, " ") {
			t.fail(short(strings.TrimSpace(id)), "its end was not told")
		} else {
			t.fail(short(id), "it was running when go test ended")
		}
	}
	clear(t.running)
	slices.Sort(t.failures)
}

// short leaves out what all packages have in common.
func short(id string) string {
	return strings.Replace(id, "github.com/fastlabel/fastlabel/", "", 1)
}

// place is the file and line before what a test says.
var place = regexp.MustCompile(`^\s+\S+\.go:\d+: `)

// reason is the last thing that a test said before it skipped.
func reason(said []string) string {
	for _, line := range slices.Backward(said) {
		if place.MatchString(line) {
			return strings.TrimSpace(place.ReplaceAllString(line, ""))
		}
	}
	return "no reason"
}
