// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	rspec "github.com/opencontainers/runtime-spec/specs-go"
	"go.podman.io/common/pkg/hooks"
	current "go.podman.io/common/pkg/hooks/1.0.0"
)

const program = "/usr/bin/fastlabel"

// kubeletPatience is how long the kubelet waits for a container, unless its
// --runtime-request-timeout says otherwise.
const kubeletPatience = 2 * time.Minute

// inject returns the hooks that podman and CRI-O would add to a container with
// these annotations, and without mounts.
func inject(t *testing.T, dir string, annotations map[string]string) (*rspec.Hooks, error) {
	t.Helper()
	manager, err := hooks.New(t.Context(), []string{dir}, nil)
	if err != nil {
		return nil, err
	}
	spec := &rspec.Spec{}
	if _, err := manager.Hooks(spec, annotations, false); err != nil {
		return nil, err
	}
	if spec.Hooks == nil {
		spec.Hooks = &rspec.Hooks{}
	}
	return spec.Hooks, nil
}

// install writes the hook's text into a directory of its own, with a program
// that exists: the matcher leaves out a hook without.
func install(t *testing.T, text string) (dir, path string) {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir = t.TempDir()
	text = strings.Replace(text, `"`+program+`"`, fmt.Sprintf("%q", path), 1)
	if err := os.WriteFile(filepath.Join(dir, hookFile), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir, path
}

// checkMatching: the hook is started for containers that ask for it, and for no
// others.
func checkMatching(t *testing.T, text string, a asks) (found faults) {
	t.Helper()
	dir, _ := install(t, text)
	for _, c := range []struct {
		key, value string
		want       bool
	}{
		{a.relabel, "true", true},
		{a.relabel, "/data", true},
		{a.relabel, "/data,/log", true},
		{a.relabel, "/false", true},
		{a.relabel, "", true}, // these the hook refuses with a sentence
		{a.relabel, "True", true},
		{a.relabel, "data", true},
		{a.relabel, " false", true},
		{a.relabel, "false", false},
		{a.relabel, "false\n", false},
		{"x" + a.relabel, "true", false},
		{"x/" + a.relabel, "true", false},
		{"x\n" + a.relabel, "true", false},
		{a.relabel + "x", "true", false},
		{a.relabel + "\n", "true", false},
		{strings.Replace(a.relabel, ".", "-", 1), "true", false},
		{"io.fastlabel.skip", "none", false},
		{"io.kubernetes.cri-o.TrySkipVolumeSELinuxLabel", "true", false},
	} {
		h, err := inject(t, dir, map[string]string{c.key: c.value, "other": "true"})
		if err != nil {
			found.add("%s: %v", hookFile, err)
			return found
		}
		if got := len(h.CreateRuntime) > 0; got != c.want {
			found.add("%s: %sinjected for %q=%q", hookFile, map[bool]string{false: "not "}[got], c.key, c.value)
		}
	}
	for _, none := range []map[string]string{nil, {"other": "true"}} {
		if h, err := inject(t, dir, none); err != nil || len(h.CreateRuntime) > 0 {
			found.add("%s: injected for no annotation (%v)", hookFile, err)
		}
	}
	return found
}

// checkEntry: the entry that the container gets.
func checkEntry(t *testing.T, text string) (found faults) {
	t.Helper()
	if !strings.Contains(text, `"`+program+`"`) {
		var h current.Hook
		if err := json.Unmarshal([]byte(text), &h); err == nil {
			found.add("%s: path %s, which make install does not replace", hookFile, h.Hook.Path)
		}
	}
	dir, path := install(t, text)
	h, err := hooks.Read(filepath.Join(dir, hookFile), nil)
	if err != nil {
		found.add("%s: %v", hookFile, err)
		return found
	}
	strict := json.NewDecoder(bytes.NewReader([]byte(text)))
	strict.DisallowUnknownFields()
	if err := strict.Decode(new(current.Hook)); err != nil {
		found.add("%s: %v", hookFile, err)
	}
	if !slices.Equal(h.Stages, []string{"createRuntime"}) {
		found.add("%s: stages %v", hookFile, h.Stages)
	}
	if h.Hook.Path != path {
		found.add("%s: path %s", hookFile, h.Hook.Path)
	}
	if !slices.Equal(h.Hook.Args, []string{"fastlabel", "hook"}) {
		found.add("%s: args %v", hookFile, h.Hook.Args)
	}
	if h.Hook.Timeout == nil {
		found.add("%s: no timeout", hookFile)
		return found
	}
	// The hook stops its margin before the runtime kills it. That shall be
	// when it stops by itself, and before the kubelet gives up.
	own, margin := readDuration(t, "hookTimeout"), readDuration(t, "hookMargin")
	given := time.Duration(*h.Hook.Timeout) * time.Second
	if given != own+margin || given >= kubeletPatience {
		found.add("%s: timeout %.0f s, with %v and %v in the hook", hookFile, given.Seconds(), own, margin)
	}
	return found
}

// A hook whose program is missing is left out without a word: what README.md
// and machineconfig-hook.yaml warn of.
func TestProgramMissing(t *testing.T) {
	text := readFiles(t)[hookFile]
	dir, path := install(t, text)
	asked := map[string]string{readAsks(t).relabel: "true"}
	if h, err := inject(t, dir, asked); err != nil || len(h.CreateRuntime) != 1 {
		t.Fatalf("with its program: %+v, %v", h, err)
	}
	gone := strings.Replace(text, program, path+".gone", 1)
	if err := os.WriteFile(filepath.Join(dir, hookFile), []byte(gone), 0o600); err != nil {
		t.Fatal(err)
	}
	if h, err := inject(t, dir, asked); err != nil || len(h.CreateRuntime) != 0 {
		t.Errorf("without: %+v, %v", h, err)
	}
}
