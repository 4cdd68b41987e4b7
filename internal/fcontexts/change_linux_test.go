// SPDX-License-Identifier: Apache-2.0

//go:build !race

package fcontexts

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/fastlabel/fastlabel/test/treetest"
)

// TestChangeOracle: libselinux's own restorecon would change the same, of labels that
// files have.
func TestChangeOracle(t *testing.T) {
	treetest.Need(t, "plain")
	oracle := build(t, "change")
	dir := treetest.Fresh(t, "tmpfs")
	contexts := filepath.Join(dir, "file_contexts")
	var rules strings.Builder
	var paths []string
	for i, c := range changes {
		path := filepath.Join(dir, fmt.Sprint("f", i))
		paths = append(paths, path)
		fmt.Fprintf(&rules, "%s %s\n", path, c.want)
		treetest.Must(t, os.WriteFile(path, nil, 0o600))
		if c.have == "" {
			continue
		}
		treetest.Must(t, syscall.Setxattr(path, "security.selinux", []byte(c.have+"\x00"), 0))
	}
	treetest.Must(t, os.WriteFile(contexts, []byte(rules.String()), 0o600))
	would := regexp.MustCompile(`^Would relabel \S+ from (?s:.*) to (\S.*)\n0$`)
	for _, part := range []string{"type", "all"} {
		for i, c := range changes {
			out, err := exec.Command(oracle, contexts, part, paths[i]).Output()
			if err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			want := c.typ
			if part == "all" {
				want = c.all
			}
			got := "not understood"
			text := strings.TrimSuffix(string(out), "\n")
			switch m := would.FindStringSubmatch(text); {
			case m != nil:
				got = m[1]
			case text == "0":
				got = ""
			case strings.HasSuffix(text, "\n-1"):
				got = "error"
			}
			if got != want {
				t.Errorf("from %q to %q, %s: libselinux has %q (%q), want %q", c.have, c.want, part, got, text, want)
			}
		}
	}
}
