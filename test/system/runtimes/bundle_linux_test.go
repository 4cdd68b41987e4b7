// SPDX-License-Identifier: Apache-2.0

package runtimes

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/fastlabel/fastlabel/test/treetest"
)

// writeBundle writes config.json for runc and crun.
func (c *container) writeBundle(t testing.TB) {
	t.Helper()
	type bind struct {
		Destination string   `json:"destination"`
		Type        string   `json:"type"`
		Source      string   `json:"source"`
		Options     []string `json:"options,omitempty"`
	}
	mounts := []bind{
		{"/proc", "proc", "proc", nil},
		// Left to itself runc makes links in the root's; a tmpfs would get
		// the label as an option, which the kernel refuses without SELinux.
		{"/dev", "bind", "/dev", []string{"rbind", "ro"}},
		{guestWitness, "bind", c.witness, []string{"rbind"}},
	}
	if c.volume != "" {
		mounts = append(mounts, bind{guestVolume, "bind", c.volume, []string{"rbind", "ro"}})
	}
	var namespaces []map[string]string
	for _, n := range []string{"mount", "pid", "network", "ipc", "uts"} {
		namespaces = append(namespaces, map[string]string{"type": n})
	}
	hooks := map[string][]hook{}
	if len(c.hooks) > 0 {
		hooks[c.stage] = c.hooks
	}
	writeJSON(t, filepath.Join(c.dir, "config.json"), map[string]any{
		"ociVersion": "1.0.2",
		"process": map[string]any{
			"args": c.process, "cwd": "/", "user": map[string]int{"uid": 0, "gid": 0}, "noNewPrivileges": true,
		},
		"root":        map[string]any{"path": place.rootfs, "readonly": true},
		"annotations": c.annotations,
		"mounts":      mounts,
		"hooks":       hooks,
		"linux":       map[string]any{"namespaces": namespaces, "mountLabel": c.mountLabel},
	})
}

// writeHooks writes the files of podman's --hooks-dir: the one of deploy/oci, with the hook
// and the stage of the test.
func (c *container) writeHooks(t testing.TB) {
	t.Helper()
	text, err := os.ReadFile("../../../deploy/oci/fastlabel.json")
	treetest.Must(t, err)
	var file map[string]any
	treetest.Must(t, json.Unmarshal(text, &file))
	for i, h := range c.hooks {
		file["hook"], file["stages"] = h, []string{c.stage}
		writeJSON(t, filepath.Join(c.dir, "hooks", fmt.Sprintf("%02d.json", i)), file)
	}
	treetest.Must(t, os.WriteFile(filepath.Join(c.dir, "containers.conf"), []byte(containersConf), 0o644))
}

// containersConf keeps podman from what it would share with the host's: its
// locks are in shared memory otherwise.
const containersConf = `[engine]
lock_type = "file"
events_logger = "none"
`

// env is the environment of the engine.
func (c *container) env() []string {
	return append(os.Environ(), "CONTAINERS_CONF="+filepath.Join(c.dir, "containers.conf"))
}

// storage is podman's, one for each runtime: a database remembers its runtime.
func (c *container) storage() string { return filepath.Join(place.dir, c.String()) }

func (c *container) podman(args ...string) []string {
	s := c.storage()
	return append([]string{
		"podman", "--root", s, "--runroot", s + "-run", "--tmpdir", s + "-tmp", "--storage-driver=vfs",
		"--cgroup-manager=cgroupfs", "--hooks-dir", filepath.Join(c.dir, "hooks"), "--runtime", c.runtime,
	}, args...)
}

// state is where runc and crun keep theirs.
func (c *container) state() string { return filepath.Join(place.dir, c.runtime+"-state") }

// runArgs is the command that runs the container and deletes it at its end.
func (c *container) runArgs() []string {
	if c.manager == "" {
		return []string{c.runtime, "--root", c.state(), "run", "--bundle", c.dir, c.id}
	}
	args := c.podman(
		// A pid limit and the highest limits of podman are more than this
		// machine may allow its root.
		"run", "--rm", "--name", c.id, "--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024",
		"--network=none", "--cgroup-parent="+parent(), "-v", c.witness+":"+guestWitness,
	)
	for key, value := range c.annotations {
		// Podman 4 takes a list, with commas between and quotes as in CSV.
		args = append(args, "--annotation", `"`+key+"="+value+`"`)
	}
	if c.volume != "" {
		args = append(args, "-v", c.volume+":"+guestVolume+":ro")
	}
	return append(append(args, "--rootfs", place.rootfs), c.process...)
}

// exists reports whether the container is still there.
func (c *container) exists() bool {
	args := []string{c.runtime, "--root", c.state(), "state", c.id}
	if c.manager != "" {
		args = c.podman("container", "exists", c.id)
	}
	return c.quietly(args) == nil
}

// remove deletes a container that did not end.
func (c *container) remove() {
	args := []string{c.runtime, "--root", c.state(), "delete", "--force", c.id}
	if c.manager != "" {
		args = c.podman("rm", "--force", "--time=0", c.id)
	}
	_ = c.quietly(args)
}

func (c *container) quietly(args []string) error {
	cmd := c.command(args...)
	cmd.Env = c.env()
	return cmd.Run()
}
