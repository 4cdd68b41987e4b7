// SPDX-License-Identifier: Apache-2.0

package mounts

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/fastlabel/fastlabel/internal/run"
	"github.com/fastlabel/fastlabel/test/treetest"
)

func TestMain(m *testing.M) { os.Exit(treetest.Main(m)) }

// mounted mounts a tmpfs until the test ends.
func mounted(t *testing.T, at string) {
	t.Helper()
	treetest.Must(t, unix.Mount("test", at, "tmpfs", 0, ""))
	t.Cleanup(func() {
		treetest.Check(t, unix.Unmount(at, unix.MNT_DETACH))
	})
}

func mkdir(t *testing.T, path string) {
	t.Helper()
	treetest.Must(t, os.MkdirAll(path, 0o755))
}

// learned opens a root as a run does, and learns of its mounts.
func learned(t *testing.T, path string) *Mount {
	t.Helper()
	p, err := OpenProc(Seen{})
	treetest.Must(t, err)
	t.Cleanup(p.Close)
	m, err := p.OpenRoot(path, nil, new(run.Activity))
	treetest.Must(t, err)
	treetest.Must(t, p.Learn(m, Bounds{Refused: p.Refusals(new(run.Activity))}))
	return m
}

// TestUnmountBusy: however the walk is confined, its mount cannot be unmounted before
// the run has left it: not where it stands in another namespace to which the mount was
// propagated either, as a pod's volume is to a plugin in a pod.
func TestUnmountBusy(t *testing.T) {
	treetest.Need(t, "root", "tmpfs")
	top := t.TempDir()
	mounted(t, top)
	treetest.Must(t, unix.Mount("", top, "", unix.MS_SHARED, ""))
	volume := top + "/volume"
	mkdir(t, volume)
	slave := exec.Command("unshare", "--mount", "--propagation", "slave", "sh", "-c", "echo; exec sleep 1000000")
	ready, err := slave.StdoutPipe()
	treetest.Must(t, err)
	treetest.Must(t, slave.Start())
	t.Cleanup(func() {
		_ = slave.Process.Kill()
		_ = slave.Wait() // it was killed
	})
	if _, err := bufio.NewReader(ready).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		path string
		try  Try
	}{
		"clone":   {volume, Try{Clone: true, Openat2: true}},
		"openat2": {volume, Try{Openat2: true}},
		"mountid": {volume, Try{}},
		"slave":   {fmt.Sprintf("/proc/%d/root%s", slave.Process.Pid, volume), Try{Clone: true, Openat2: true}},
	} {
		treetest.Must(t, unix.Mount("test", volume, "tmpfs", 0, ""))
		m := learned(t, c.path)
		if op, e := m.Enclose(Bounds{}, c.try); e != 0 {
			t.Fatal(op, e)
		}
		if err := unix.Unmount(volume, 0); !errors.Is(err, syscall.EBUSY) {
			t.Errorf("%s: unmounted during a run: %v", name, err)
		}
		m.Leave()
		m.Close()
		if err := unix.Unmount(volume, 0); err != nil {
			t.Errorf("%s: after the run: %v", name, err)
		}
	}
}
