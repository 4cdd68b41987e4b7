// SPDX-License-Identifier: Apache-2.0

//go:build linux

package inside

import (
	"syscall"
	"testing"

	"github.com/fastlabel/fastlabel/test/treetest"
)

const (
	levelA = "s0:c1,c2"
	levelB = "s0:c3,c4"
)

// TestRuntimeHook: each engine starts a container in container_t with its level.
// Without our hook the policy denies it the volume; with the hook it reads and
// writes all of it, and what it makes has the volume's label. A container of
// another level is then denied it.
//
// Podman gives what is to be run at prestart to its runtime as createRuntime.
func TestRuntimeHook(t *testing.T) {
	cases := []struct {
		engine      engine
		stage       string
		filesystems []string
	}{
		{runc, "createRuntime", volumes},
		{runc, "prestart", volumes[:1]},
		{crun, "createRuntime", volumes},
		{crun, "prestart", volumes[:1]},
		{podmanRunc, "createRuntime", volumes[:1]},
		{podmanCrun, "createRuntime", volumes[1:2]},
	}
	for _, c := range cases {
		t.Run(c.engine.String()+"/"+c.stage, func(t *testing.T) {
			eachOf(t, c.filesystems, func(t *testing.T, dir string) { hooked(t, dir, c.engine, c.stage) })
		})
	}
}

func hooked(t *testing.T, dir string, e engine, stage string) {
	root := grow(t, dir)
	entries := len(treetest.Read(t, root))
	c := container{engine: e, level: levelA, volume: root}
	denied(t, c)

	c.stage = stage
	c.run(t).used(t, c, entries)
	all(t, root, labelA)
	if got := len(treetest.Read(t, root)); got != entries+len(guestMakes) {
		t.Errorf("%d entries afterwards, not %d", got, entries+len(guestMakes))
	}

	denied(t, container{engine: e, level: levelB, volume: root})
}

// confined fails the test unless the container's process ran, under the labels
// that it was to have.
func (m met) confined(t *testing.T, c container) {
	t.Helper()
	if m.code != 0 || !m.ran {
		t.Fatalf("%s: exit code %d, the process ran: %v: %s", c.engine, m.code, m.ran, m.said)
	}
	if m.Context != domain+c.level {
		t.Errorf("%s: the process is in %s, not in %s", c.engine, m.Context, domain+c.level)
	}
	if m.Dev != fileType+c.level {
		t.Errorf("%s: /dev has %s, not %s", c.engine, m.Dev, fileType+c.level)
	}
}

// denied starts the container, whose process must be denied the volume.
func denied(t *testing.T, c container) {
	t.Helper()
	m := c.run(t)
	m.confined(t, c)
	if m.Read != syscall.EACCES || m.Write != syscall.EACCES || m.Entries > 1 {
		t.Errorf("%s: read %d entries (%v), wrote: %v", c.engine, m.Entries, m.Read, m.Write)
	}
}

// used fails the test unless the container's process ran in its domain, read
// all the entries, and wrote.
func (m met) used(t *testing.T, c container, entries int) {
	t.Helper()
	m.confined(t, c)
	if m.Read != 0 || m.Write != 0 || m.Entries != entries {
		t.Errorf("%s: read %d of %d entries (%v), wrote: %v", c.engine, m.Entries, entries, m.Read, m.Write)
	}
}
