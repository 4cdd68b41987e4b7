// SPDX-License-Identifier: Apache-2.0

package runtimes

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fastlabel/fastlabel/test/treetest"
)

// What a container's annotations may ask of the hook.
const (
	askRelabel = "io.fastlabel.relabel"
	askLabel   = "io.fastlabel.label"
)

// patience is how long a start may take. None of these should need it: a start
// that takes so long hangs.
const patience = 2 * treetest.Patience

// hook is an entry of config.json, or the hook of a file for podman.
type hook struct {
	Path    string   `json:"path"`
	Args    []string `json:"args"`
	Timeout int      `json:"timeout,omitempty"` // seconds
}

// ours is the command as it is to be installed: program is it, or a link to it.
func ours(program string, timeout int) hook {
	return hook{program, []string{"fastlabel", "hook"}, timeout}
}

// noted is the command with its lines, -v, in a file. The timeout is one that
// it does not know of.
func noted(program, file string, timeout int) hook {
	return hook{place.wrapped, []string{"wrapped", program, file}, timeout}
}

// container is one to start.
type container struct {
	engine
	id          string
	dir         string // the bundle of runc and crun, the hooks of podman
	witness     string
	volume      string // "": none
	mountLabel  string // linux.mountLabel of config.json
	annotations map[string]string
	stage       string
	hooks       []hook
	process     []string
}

var last atomic.Int64

// newContainer is one without hooks, whose process does nothing.
func newContainer(t testing.TB, e engine) *container {
	t.Helper()
	dir := t.TempDir()
	c := &container{
		engine: e, id: fmt.Sprintf("fastlabel-%d-%d", os.Getpid(), last.Add(1)), dir: dir,
		witness: filepath.Join(dir, "witness"), annotations: map[string]string{}, process: idleArgs(),
	}
	for _, name := range []string{"witness", "hooks"} {
		treetest.Must(t, os.Mkdir(filepath.Join(dir, name), 0o755))
	}
	t.Cleanup(func() {
		if c.exists() {
			t.Errorf("%s: the container is not deleted", c.engine)
			c.remove()
		}
	})
	return c
}

// with is a container that asks the hooks to label the volume. Podman gives a
// container a label only where SELinux is on, so there an annotation does.
func (c cell) with(t testing.TB, v volume, hooks ...hook) *container {
	t.Helper()
	x := newContainer(t, c.engine)
	x.volume, x.stage, x.hooks = v.root, c.stage, hooks
	x.annotations[askRelabel] = guestVolume
	if c.manager == "" {
		x.mountLabel = newLabel
	} else {
		x.annotations[askLabel] = newLabel
	}
	x.process = guestArgs(newLabel, v.entries, 0)
	return x
}

// result is what came of a start.
type result struct {
	code int
	said string // what the engine wrote, and the container's process
	ran  bool   // the container's process did
	took time.Duration
}

// start runs the container until it has ended and is deleted. Output goes to a file: a
// pipe would hide that a process is left behind that holds it.
func (c *container) start(t testing.TB) (r result) {
	t.Helper()
	_ = os.Remove(filepath.Join(c.witness, "ran"))
	out, err := os.Create(filepath.Join(c.dir, "out"))
	treetest.Must(t, err)
	defer out.Close()
	if c.manager != "" {
		c.writeHooks(t)
	} else {
		c.writeBundle(t)
	}
	cmd := c.command(c.runArgs()...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = c.dir, out, out
	cmd.Env = c.env()
	begin := time.Now()
	treetest.Must(t, cmd.Start())
	hangs := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
	var exit *exec.ExitError
	if err := cmd.Wait(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	r.took = time.Since(begin)
	said, err := os.ReadFile(out.Name())
	treetest.Must(t, err)
	r.code, r.said = cmd.ProcessState.ExitCode(), string(said)
	_, err = os.Stat(filepath.Join(c.witness, "ran"))
	r.ran = err == nil
	if !hangs.Stop() {
		t.Fatalf("%s: no end after %v: %s", c.engine, r.took, r.said)
	}
	return r
}

// says reports whether the engine showed the line. Engines that log quote it.
func (r result) says(line string) bool {
	return strings.Contains(strings.ReplaceAll(r.said, `\`, ""), line)
}

// succeeds fails the test unless the container's process ran and was content.
func (r result) succeeds(t testing.TB, what string) {
	t.Helper()
	if r.code != 0 || !r.ran {
		t.Fatalf("%s: exit %d, the process ran: %v: %s", what, r.code, r.ran, r.said)
	}
}

// stopped fails the test unless the hook kept the process from running.
func (r result) stopped(t testing.TB, what string) {
	t.Helper()
	if r.code == 0 || r.ran {
		t.Errorf("%s: exit %d, the process ran: %v: %s", what, r.code, r.ran, r.said)
	}
}

func writeJSON(t testing.TB, path string, value any) {
	t.Helper()
	text, err := json.Marshal(value)
	treetest.Must(t, err)
	treetest.Must(t, os.WriteFile(path, text, 0o644))
}
