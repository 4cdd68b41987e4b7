// SPDX-License-Identifier: Apache-2.0

package runtimes

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/fastlabel/fastlabel/test/treetest"
)

// engine is what starts containers: runc or crun with a bundle, or podman,
// which has one of the two beneath it.
type engine struct {
	manager string // podman, or ""
	runtime string // runc or crun
}

var engines = []engine{{"", "runc"}, {"", "crun"}, {"podman", "runc"}, {"podman", "crun"}}

// stages are those that a hook which labels can be at.
var stages = []string{"createRuntime", "prestart"}

func (e engine) String() string {
	if e.manager != "" {
		return e.manager + "-" + e.runtime
	}
	return e.runtime
}

// name is what FASTLABEL_PROMISE calls the engine.
func (e engine) name() string {
	if e.manager != "" {
		return e.manager
	}
	return e.runtime
}

// cell is an engine and the stage that its hook is at.
type cell struct {
	engine
	stage string
}

// eachEngine runs test for every engine that starts containers here, several at
// once: much of the time is spent in waiting.
func eachEngine(t *testing.T, test func(t *testing.T, e engine)) {
	t.Helper()
	for _, e := range engines {
		t.Run(e.String(), func(t *testing.T) {
			t.Parallel()
			e.need(t)
			test(t, e)
		})
	}
}

// each runs test for every engine and stage.
func each(t *testing.T, test func(t *testing.T, c cell)) {
	t.Helper()
	eachEngine(t, func(t *testing.T, e engine) {
		for _, s := range stages {
			t.Run(s, func(t *testing.T) { test(t, cell{e, s}) })
		}
	})
}

// started remembers whether an engine started a container without a hook.
var started = struct {
	sync.Mutex
	by map[engine]error
}{by: map[engine]error{}}

// need goes on only if the engine starts a container that has no hook. One that
// is there and does not start one fails the test if it was promised.
func (e engine) need(t testing.TB) {
	t.Helper()
	treetest.Need(t, "root", "ext4", e.name(), e.runtime)
	if e.manager != "" {
		treetest.Need(t, "conmon")
	}
	started.Lock()
	defer started.Unlock()
	setUp(t)
	err, known := started.by[e]
	if !known {
		if r := newContainer(t, e).start(t); r.code != 0 || !r.ran {
			err = fmt.Errorf("it does not start a container: exit %d: %s", r.code, r.said)
		}
		started.by[e] = err
	}
	if err != nil {
		treetest.Lack(t, e.name(), err)
	}
}

// unified is where systemd's hybrid layout mounts cgroup2, beside version 1.
// crun takes such a machine for one of version 2 and fails, so it is started
// where this is not mounted.
const unified = "/sys/fs/cgroup/unified"

// command runs args in a mount namespace of its own, so that the engine leaves
// no mount here.
func (e engine) command(args ...string) *exec.Cmd {
	prepare := ":"
	var fs unix.Statfs_t
	if err := unix.Statfs(unified, &fs); e.runtime == "crun" && err == nil && fs.Type == unix.CGROUP2_SUPER_MAGIC {
		prepare = "umount " + unified
	}
	return exec.Command("unshare", append([]string{"-m", "sh", "-ec", prepare + `; exec "$@"`, "sh"}, args...)...)
}

// parent is the cgroup that podman puts containers in, named after place.dir.
// It leaves it behind, with one for conmon in it.
func parent() string { return "/" + filepath.Base(place.dir) }

// clearUp removes what the process made once for all tests.
func clearUp() error {
	if place.dir == "" {
		return nil
	}
	errs := []error{os.RemoveAll(place.dir)}
	for _, layout := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/*"} {
		for _, below := range []string{"/conmon", ""} {
			groups, _ := filepath.Glob(layout + parent() + below)
			for _, dir := range groups {
				errs = append(errs, os.Remove(dir))
			}
		}
	}
	return errors.Join(errs...)
}
