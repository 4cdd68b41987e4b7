// SPDX-License-Identifier: Apache-2.0

package runtimes

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// crunStderr is the annotation by which crun gives hooks a file for stderr.
const crunStderr = "run.oci.hooks.stderr"

// withLines has crun keep what the hook says; runc shows it without.
func (c *container) withLines() *container {
	if c.runtime == "crun" {
		c.annotations[crunStderr] = c.linesFile()
	}
	return c
}

func (c *container) linesFile() string { return filepath.Join(c.dir, "lines") }

// hasLines fails the test unless all of these are in the hook's lines, and those
// where the engine puts them: runc shows them in the error that stopped the
// start, and crun only where it is told to.
func (c *container) hasLines(t *testing.T, r result, parts ...string) {
	t.Helper()
	t.Logf("%s says: %s", c.engine, strings.TrimSpace(r.said))
	lines := r.said
	if c.runtime == "crun" {
		if !r.says("hook") {
			t.Errorf("%s does not name the hook", c.engine)
		}
		text, err := os.ReadFile(c.linesFile())
		if err != nil {
			t.Fatal(err)
		}
		lines = string(text)
		t.Logf("beside it: %s", strings.TrimSpace(lines))
	}
	for _, part := range parts {
		if !(result{said: lines}).says(part) {
			t.Errorf("nowhere: %s", part)
		}
		if c.runtime == "crun" && r.says(part) {
			t.Errorf("%s shows %s: the annotation is not needed any more", c.engine, part)
		}
	}
}

// TestNoMount asks for a destination that is no mount: nothing starts, and
// nothing is labelled.
func TestNoMount(t *testing.T) {
	each(t, func(t *testing.T, c cell) {
		const line = ": /nowhere: no mount of this container"
		v := disk(t)
		x := c.with(t, v, ours(place.hook, 0)).withLines()
		x.annotations[askRelabel] = "/nowhere"
		r := x.start(t)
		r.stopped(t, "a destination that is no mount")
		x.hasLines(t, r, line)
		v.has(t, oldLabel)
		x.annotations[askRelabel] = guestVolume
		x.start(t).succeeds(t, "control: the same container, with the right destination")
	})
}
