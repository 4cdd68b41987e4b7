// SPDX-License-Identifier: Apache-2.0

package runtimes

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// recorded is what a hook was given: the state, and config.json as it was then.
type recorded struct {
	State  json.RawMessage `json:"state"`
	Config json.RawMessage `json:"config"`
}

// record is a hook that keeps what it is given in a file.
func record(args []string) error {
	if len(args) != 1 {
		return errors.New("role-record FILE")
	}
	state, err := io.ReadAll(os.Stdin)
	if err != nil {
		return err
	}
	var s struct{ Bundle string }
	if err := json.Unmarshal(state, &s); err != nil {
		return err
	}
	config, err := os.ReadFile(filepath.Join(s.Bundle, "config.json"))
	if err != nil {
		return err
	}
	return writeJSON(args[0], recorded{state, config})
}

// recorder is the hook that records.
func recorder(t testing.TB, file string) hook {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return hook{self, []string{"record", "role-record", file}, 0}
}

// given is the part of config.json that the hook relies on.
type given struct {
	Mounts []struct {
		Destination, Source string
		Options             []string
	}
	Linux struct{ MountLabel string }
	Hooks map[string][]hook
}

// TestState records what each engine tells a hook. That the hook takes it as it
// is shows the same start: both are hooks of the one container.
func TestState(t *testing.T) {
	each(t, func(t *testing.T, c cell) {
		v := disk(t)
		file := filepath.Join(t.TempDir(), "recorded")
		x := c.with(t, v, recorder(t, file), ours(place.hook, 77))
		x.start(t).succeeds(t, "recorded")
		v.has(t, newLabel)

		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var r recorded
		var s map[string]any
		var config given
		for _, err := range []error{json.Unmarshal(text, &r), json.Unmarshal(r.State, &s), json.Unmarshal(r.Config, &config)} {
			if err != nil {
				t.Fatal(err)
			}
		}
		t.Logf("the state: %s", r.State)
		c.checkState(t, x, s)
		c.checkConfig(t, v, config)
		if config.Linux.MountLabel != x.mountLabel {
			t.Errorf("linux.mountLabel is %q, not %q", config.Linux.MountLabel, x.mountLabel)
		}
	})
}

func (c cell) checkState(t *testing.T, x *container, s map[string]any) {
	t.Helper()
	for _, name := range []string{"ociVersion", "id", "bundle"} {
		if value, is := s[name].(string); !is || value == "" {
			t.Errorf("%s is %v", name, s[name])
		}
	}
	if pid, is := s["pid"].(float64); !is || pid < 1 {
		t.Errorf("pid is %v", s["pid"])
	}
	// crun has a root that the specification does not know, and says that the
	// container is created when it is being created.
	status := map[string]string{"runc": "creating", "crun": "created"}[c.runtime]
	if s["status"] != status {
		t.Errorf("status is %v, not %s", s["status"], status)
	}
	if _, has := s["root"]; has != (c.runtime == "crun") {
		t.Errorf("root is %v", s["root"])
	}
	annotations, _ := s["annotations"].(map[string]any)
	for key, value := range x.annotations {
		if annotations[key] != value {
			t.Errorf("%s is %v, not %s", key, annotations[key], value)
		}
	}
}

func (c cell) checkConfig(t *testing.T, v volume, config given) {
	t.Helper()
	var sources []string
	for _, m := range config.Mounts {
		if m.Destination == guestVolume {
			sources = append(sources, m.Source)
		}
		if slices.ContainsFunc(m.Options, func(o string) bool { return strings.EqualFold(o, "z") }) {
			t.Errorf("%s has the options %v", m.Destination, m.Options)
		}
	}
	if !slices.Equal(sources, []string{v.root}) {
		t.Errorf("%s is of %q, not %q", guestVolume, sources, v.root)
	}
	var at []string
	for stage, hooks := range config.Hooks {
		for _, h := range hooks {
			if h.Path == place.hook && h.Timeout == 77 {
				at = append(at, stage)
			}
		}
	}
	t.Logf("asked for at %s, the hook is at %s in config.json", c.stage, at)
	if len(at) != 1 || !slices.Contains(stages, at[0]) {
		t.Errorf("the hook is at %q", at)
	}
}
