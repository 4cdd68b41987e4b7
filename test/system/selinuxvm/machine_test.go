// SPDX-License-Identifier: Apache-2.0

package selinuxvm

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestMachine: both kernels enforce, run what they are given with both outputs
// and the exit code told apart, and leave nothing behind.
func TestMachine(t *testing.T) {
	m := image(t)
	for _, k := range m.Kernels {
		t.Run(k.Release, func(t *testing.T) {
			t.Parallel()
			script := `id -Z; cat /sys/fs/selinux/enforce; echo; echo "$WORD" >&2; for f in /left /volumes/ext4/left /volumes/xfs/left /volumes/tmpfs/left; do echo >$f || exit 1; done; sync; exit 3`
			before := changed(t, m, k)
			r, err := m.Run(t.Context(), k, Command{Args: []string{"sh", "-c", script}, Env: []string{"WORD=it's told"}})
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("booted in %v", r.Boot.Round(time.Second/10))
			if want := "unconfined_u:unconfined_r:unconfined_t:s0-s0:c0.c1023\n1\n"; r.Stdout != want {
				t.Errorf("stdout %q, not %q", r.Stdout, want)
			}
			if want := "it's told\n"; r.Stderr != want {
				t.Errorf("stderr %q, not %q", r.Stderr, want)
			}
			if r.Exit != 3 || r.Release != k.Release {
				t.Errorf("exit code %d of Linux %s, not 3 of %s", r.Exit, r.Release, k.Release)
			}
			if after := changed(t, m, k); after != before {
				t.Errorf("the image was changed: %s, %s before", after, before)
			}
		})
	}
	failures := []struct {
		name, want string
		c          Command
	}{
		{"boot hangs", "begun", Command{Args: []string{"true"}, Boot: time.Second}},
		{"command hangs", "exit", Command{Args: []string{"sleep", "1000"}, Timeout: 2 * time.Second}},
		{"machine dies", "ended without", Command{Args: []string{"sh", "-c", "echo it dies now >/dev/console; busybox reboot -f"}}},
	}
	for _, f := range failures {
		t.Run(f.name, func(t *testing.T) {
			_, err := m.Run(t.Context(), m.Kernels[0], f.c)
			if err == nil || !strings.Contains(err.Error(), f.want) || !strings.Contains(err.Error(), "the console's end") {
				t.Errorf("no error that has %q and the console: %v", f.want, err)
			}
			if f.name == "machine dies" && err != nil && !strings.Contains(err.Error(), "it dies now") {
				t.Errorf("the console's end lacks its last line: %v", err)
			}
		})
	}
}

// changed tells when the image's files were written.
func changed(t *testing.T, m *Image, k Kernel) string {
	t.Helper()
	var out strings.Builder
	for _, name := range []string{"root.img", k.Suite + "/vmlinuz", k.Suite + "/initramfs"} {
		info, err := os.Stat(filepath.Join(m.dir, name))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(&out, name, info.Size(), info.ModTime())
	}
	return out.String()
}
