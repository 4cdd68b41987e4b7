// SPDX-License-Identifier: Apache-2.0

package runtimes

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
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
// nothing is labelled. The hook's line is in syslog as well, as JSON.
func TestNoMount(t *testing.T) {
	each(t, func(t *testing.T, c cell) {
		const line = ": /nowhere: no mount of this container"
		v := disk(t)
		syslog := listen(t)
		x := c.with(t, v, ours(place.hook, 0)).withLines()
		x.prepare = syslog.shell()
		x.annotations[askRelabel] = "/nowhere"
		r := x.start(t)
		r.stopped(t, "a destination that is no mount")
		x.hasLines(t, r, line)
		v.has(t, oldLabel)
		got := strings.Join(syslog.lines(t), "")
		t.Logf("in syslog: %s", strings.TrimSpace(got))
		if !strings.HasPrefix(got, "<27>") || !strings.HasSuffix(got, `"destination":"/nowhere","path":"","text":"no mount of this container"}`+"\n") {
			t.Errorf("in syslog: %q", got)
		}
		x.annotations[askRelabel] = guestVolume
		x.start(t).succeeds(t, "control: the same container, with the right destination")
		if got := syslog.lines(t); len(got) > 0 {
			t.Errorf("control: in syslog: %q", got)
		}
	})
}

// TestImmutable has a file in the volume that nobody may label: the container
// does not start, the file is named, and the root is not trusted.
func TestImmutable(t *testing.T) {
	each(t, func(t *testing.T, c cell) {
		v := disk(t)
		immutable(t, v, true)
		x := c.with(t, v, ours(place.hook, 0)).withLines()
		r := x.start(t)
		r.stopped(t, "an immutable file")
		x.hasLines(t, r, "fastlabel: container ", ": "+guestVolume+": ", deep, "operation not permitted")
		v.sealed(t)
		if got := v.labels(t); got[newLabel] != v.entries-2 || got[oldLabel] != 1 {
			t.Errorf("not all but the root and the file: %v", got)
		}
		immutable(t, v, false)
		x.start(t).succeeds(t, "control: the same container, when the file can be labelled")
		v.has(t, newLabel)
	})
}

// immutableFlag is FS_IMMUTABLE_FL of linux/fs.h.
const immutableFlag = 0x10

// immutable sets or clears the flag of chattr(1) on the file deep.
func immutable(t testing.TB, v volume, on bool) {
	t.Helper()
	f, err := os.Open(filepath.Join(v.root, deep))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	flags, err := unix.IoctlGetInt(int(f.Fd()), unix.FS_IOC_GETFLAGS)
	if err != nil {
		t.Fatal(err)
	}
	flags &^= immutableFlag
	if on {
		flags |= immutableFlag
		t.Cleanup(func() { immutable(t, v, false) })
	}
	if err := unix.IoctlSetPointerInt(int(f.Fd()), unix.FS_IOC_SETFLAGS, flags); err != nil {
		t.Fatal(err)
	}
}
