// SPDX-License-Identifier: Apache-2.0

//go:build linux

package inside

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fastlabel/fastlabel/test/treetest"
)

// engine is what starts containers: runc or crun with a bundle, or podman,
// which has one of the two beneath it.
type engine struct {
	manager string // podman, or ""
	runtime string // runc or crun
}

var (
	runc       = engine{"", "runc"}
	crun       = engine{"", "crun"}
	podmanRunc = engine{"podman", "runc"}
	podmanCrun = engine{"podman", "crun"}
)

func (e engine) String() string {
	if e.manager != "" {
		return e.manager + "-" + e.runtime
	}
	return e.runtime
}

// engineDomain is what the engines run as: an administrator at the lowest level.
const engineDomain = "unconfined_u:unconfined_r:unconfined_t:s0"

// Where things are in a container.
const (
	guestProgram = "/bin/guest"
	guestVolume  = "/volume"
	guestWitness = "/witness" // a directory of the machine's, in which every container may write
)

// askRelabel is the annotation that tells the hook what to label.
const askRelabel = "io.fastlabel.relabel"

// container is one to start.
type container struct {
	engine
	level  string // of its process, and of the files that are its own
	volume string
	stage  string // of our hook: createRuntime or prestart; "" for none
}

// met is what became of a start: the engine's side, and what the container's
// process found, if it ran.
type met struct {
	code int
	said string // by the engine
	ran  bool
	report
}

// place is what containers have for their root, with this program in it, and
// a mounted hierarchy of control groups: made once, at the first need.
var place = sync.OnceValues(func() (string, error) {
	root := "/volumes/tmpfs/rootfs"
	for _, d := range []string{"bin", "dev", "etc", "proc", "run", "sys", "tmp", "var", guestVolume, guestWitness} {
		if err := os.MkdirAll(filepath.Join(root, d), 0o755); err != nil {
			return "", err
		}
	}
	if err := os.Link(program, filepath.Join(root, guestProgram)); err != nil {
		return "", err
	}
	return root, os.NewSyscallError("mount", unix.Mount("cgroup2", "/sys/fs/cgroup", "cgroup2", 0, ""))
})

// run starts the container as an administrator would, and waits for its end.
func (c container) run(t *testing.T) met {
	t.Helper()
	root, err := place()
	treetest.Must(t, err)
	dir, err := os.MkdirTemp("/volumes/tmpfs", "c-")
	treetest.Must(t, err)
	defer os.RemoveAll(dir)
	witness := mkdir(t, dir, "witness")
	treetest.Must(t, os.Chmod(dir, 0o755))
	args := c.arguments(t, dir, root)
	// The process writes to its outputs too, so that it must be allowed to.
	out, err := os.Create(filepath.Join(witness, "out"))
	treetest.Must(t, err)
	defer out.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	// The shell, for an engine's program is no way into its domain.
	cmd := exec.CommandContext(ctx, "sh", append([]string{"-c", `exec "$@"`, "sh"}, args...)...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, out, out
	start(t, engineDomain, cmd)
	var exit *exec.ExitError
	if err := cmd.Wait(); err != nil && (!errors.As(err, &exit) || ctx.Err() != nil) {
		t.Fatalf("%s: %v", cmd, err)
	}
	said, err := os.ReadFile(out.Name())
	treetest.Must(t, err)
	m := met{code: cmd.ProcessState.ExitCode(), said: strings.TrimSpace(string(said))}
	text, err := os.ReadFile(filepath.Join(witness, "report"))
	if errors.Is(err, os.ErrNotExist) {
		return m
	}
	treetest.Must(t, err)
	treetest.Must(t, json.Unmarshal(text, &m.report))
	m.ran = true
	return m
}

// arguments prepares the start in dir and gives the command.
func (c container) arguments(t *testing.T, dir, root string) []string {
	t.Helper()
	if c.manager == "" {
		return c.writeBundle(t, dir, root)
	}
	args := []string{
		"podman", "--cgroup-manager=cgroupfs", // no systemd is here to be asked for one
		"--runtime", c.runtime, "--hooks-dir", c.writeHooks(t, dir),
		"run", "--rm", "--network=none", "--security-opt", "label=level:" + c.level,
		"-v", filepath.Join(dir, "witness") + ":" + guestWitness, "-v", c.volume + ":" + guestVolume,
	}
	if c.stage != "" {
		args = append(args, "--annotation", askRelabel+"="+guestVolume)
	}
	return append(args, "--rootfs", root, guestProgram, "role-guest")
}
