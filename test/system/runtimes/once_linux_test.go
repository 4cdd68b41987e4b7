// SPDX-License-Identifier: Apache-2.0

package runtimes

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fastlabel/fastlabel/test/treetest"
)

// many is how many containers start on one volume at once.
const many = 20

// waits is what the hook says while another labels the volume.
const waits = ": waiting for another relabel of this volume "

// TestOnce starts many containers on one volume at once: one of them walks, the
// others find it done. The server holds the first until all are there, and
// counts who opens a directory deep in the volume. The control has them all walk
// (skip=none).
func TestOnce(t *testing.T) {
	eachEngine(t, func(t *testing.T, e engine) {
		for _, c := range []struct {
			stage, skip         string
			walks, done, waited int
		}{
			{"createRuntime", "root", 1, many - 1, many - 1},
			{"prestart", "root", 1, many - 1, many - 1},
			{"createRuntime", "none", many, 0, many - 1},
		} {
			// Podman takes its time: one stage each, and no control, since the
			// counts are the server's and the hook's.
			if e.manager != "" && (c.skip == "none" || (c.stage == "prestart") != (e.runtime == "crun")) {
				continue
			}
			t.Run(c.stage+"/"+c.skip, func(t *testing.T) {
				s := serve(t, plant(t, onDisk(t), small))
				lines := filepath.Join(t.TempDir(), "lines")
				s.hold()
				storm(t, s, cell{e, c.stage}, c.skip, lines)
				text, err := os.ReadFile(lines)
				if err != nil {
					t.Fatal(err)
				}
				opens, sets := s.counts()
				got := map[string]int{
					"walks":  opens["a/b/c/d"],
					"done":   strings.Count(string(text), ": already labelled (root), "),
					"wrote":  strings.Count(string(text), " written, ") - strings.Count(string(text), " 0 written, "),
					"waited": strings.Count(string(text), waits),
				}
				want := map[string]int{"walks": c.walks, "done": c.done, "wrote": 1, "waited": c.waited}
				if diff := treetest.Diff(want, got); len(diff) > 0 {
					t.Errorf("not as wanted (-) but (+): %q\n%s", diff, text)
				}
				again := 0 // a signal that comes while a request waits has it made again
				for path, n := range sets {
					if path != "" && n > 1 {
						again++
					}
				}
				if again > len(sets)/10 {
					t.Errorf("%d of %d entries were labelled more than once", again, len(sets))
				}
				s.has(t, newLabel)
			})
		}
	})
}

// storm starts the containers, lets them go on when one hook holds the volume
// and all others say that they wait for it, and awaits their ends. Each one's process has found every label right.
func storm(t *testing.T, s *server, c cell, skip, lines string) {
	t.Helper()
	var all sync.WaitGroup
	results, errs := make([]result, many), make([]error, many)
	for i := range many {
		x := s.with(t, c, noted(s.hook, lines, 0))
		x.annotations[askSkip] = skip
		all.Go(func() { results[i], errs[i] = x.run(t.Context()) })
	}
	waiting := 0
	for end := time.Now().Add(patience / 2); waiting < many-1 && time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		text, _ := os.ReadFile(lines) // the first that has something to say makes it
		waiting = strings.Count(string(text), waits)
	}
	if waiting < many-1 {
		t.Errorf("%d wait, not %d", waiting, many-1)
	}
	s.release()
	all.Wait()
	for i, r := range results {
		if errs[i] != nil {
			t.Error(errs[i])
		} else if r.code != 0 || !r.ran {
			t.Errorf("container %d: exit %d: %s", i, r.code, r.said)
		}
	}
	nobody(t, s.hook)
}
