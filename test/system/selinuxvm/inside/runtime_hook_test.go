// SPDX-License-Identifier: Apache-2.0

//go:build linux

package inside

import (
	"syscall"
	"testing"

	"github.com/fastlabel/fastlabel/test/system/selinuxvm/avc"
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
			eachOf(t, c.filesystems, func(t *testing.T, dir string, log *avc.Log) { hooked(t, dir, log, c.engine, c.stage) })
		})
	}
}

func hooked(t *testing.T, dir string, log *avc.Log, e engine, stage string) {
	root := grow(t, dir)
	before, entries := labelOf(t, root), len(treetest.Read(t, root))
	c := container{engine: e, level: levelA, volume: root}
	denied(t, c)
	log.Has(t, refused(c, before))

	c.stage = stage
	c.run(t).used(t, c, entries)
	untroubled(t, c, log)
	all(t, root, labelA)
	if got := len(treetest.Read(t, root)); got != entries+len(guestMakes) {
		t.Errorf("%d entries afterwards, not %d", got, entries+len(guestMakes))
	}

	denied(t, container{engine: e, level: levelB, volume: root}) // in silence: see TestAccess
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

// refused is what the policy says when it denies the container the root of its
// volume, for the label that this has.
func refused(c container, label string) avc.Denial {
	return avc.Denial{Permissions: []string{"read"}, Source: domain + c.level, Target: label, Class: "dir"}
}

// untroubled fails the test if the policy refused the container's process
// anything but the pipes that its engine gives it for its outputs: to
// container_t Debian's policy refuses those of an administrator.
func untroubled(t *testing.T, c container, log *avc.Log) {
	t.Helper()
	for _, d := range log.Take(t) {
		if d.Source == domain+c.level && d.Class != "fifo_file" {
			t.Errorf("%s: refused, and should not be: %s", c.engine, d.Text)
		}
	}
}
