// SPDX-License-Identifier: Apache-2.0

//go:build linux

package inside

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/fastlabel/fastlabel/test/treetest"
)

var containers atomic.Int64

// writeBundle writes config.json for runc and crun, with the labels that a manager
// above them gives, and the command.
func (c container) writeBundle(t *testing.T, dir, root string) []string {
	t.Helper()
	type mount struct {
		Destination string   `json:"destination"`
		Type        string   `json:"type"`
		Source      string   `json:"source"`
		Options     []string `json:"options,omitempty"`
	}
	var namespaces []map[string]string
	for _, n := range []string{"mount", "pid", "network", "ipc", "uts"} {
		namespaces = append(namespaces, map[string]string{"type": n})
	}
	hooks, annotations := map[string]any{}, map[string]string{}
	if c.stage != "" {
		hooks[c.stage] = []any{shipped(t)["hook"]}
		annotations[askRelabel] = guestVolume
	}
	writeJSON(t, filepath.Join(dir, "config.json"), map[string]any{
		"ociVersion": "1.0.2",
		"process": map[string]any{
			"args": []string{guestProgram, "role-guest"}, "cwd": "/", "user": map[string]int{"uid": 0, "gid": 0},
			"selinuxLabel": domain + c.level,
		},
		"root":        map[string]any{"path": root},
		"annotations": annotations,
		"hooks":       hooks,
		"linux":       map[string]any{"namespaces": namespaces, "mountLabel": fileType + c.level},
		"mounts": []mount{
			{"/proc", "proc", "proc", nil},
			{"/dev", "tmpfs", "tmpfs", []string{"nosuid", "mode=755"}},
			{guestVolume, "bind", c.volume, []string{"rbind"}},
			{guestWitness, "bind", filepath.Join(dir, "witness"), []string{"rbind"}},
		},
	})
	return []string{c.runtime, "run", "--bundle", dir, fmt.Sprintf("fastlabel-%d", containers.Add(1))}
}

// shipped is the hook's file for podman and CRI-O as the house ships it, with
// the path that the command has here.
func shipped(t *testing.T) map[string]any {
	t.Helper()
	text, err := os.ReadFile("/payload/fastlabel.json")
	treetest.Must(t, err)
	var file map[string]any
	treetest.Must(t, json.Unmarshal(text, &file))
	file["hook"].(map[string]any)["path"] = command
	return file
}

// writeHooks makes podman's directory of hooks, with ours in it at the stage, or
// with none.
func (c container) writeHooks(t *testing.T, dir string) string {
	t.Helper()
	hooks := mkdir(t, dir, "hooks")
	if c.stage != "" {
		file := shipped(t)
		file["stages"] = []string{c.stage}
		writeJSON(t, filepath.Join(hooks, "fastlabel.json"), file)
	}
	return hooks
}

func writeJSON(t *testing.T, path string, value any) {
	t.Helper()
	text, err := json.Marshal(value)
	treetest.Must(t, err)
	treetest.Must(t, os.WriteFile(path, text, 0o644))
}
