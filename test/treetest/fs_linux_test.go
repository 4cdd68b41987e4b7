// SPDX-License-Identifier: Apache-2.0

package treetest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestCleanUpSparesWhatIsMounted holds that a fresh directory is never
// removed through a mount, not even one that the test made itself.
func TestCleanUpSparesWhatIsMounted(t *testing.T) {
	Need(t, "tmpfs")
	dir := Fresh(t, "tmpfs")
	precious := filepath.Join(dir, "out", "precious")
	Build(t, filepath.Join(dir, "out"), Text(t, "file precious"))
	t.Run("test", func(t *testing.T) {
		Build(t, filepath.Join(dir, "tree"), Text(t, `dir "a b\\"`))
		at := filepath.Join(dir, "tree", `a b\`)
		for range 2 { // one on top of the other
			if err := unix.Mount(filepath.Dir(precious), at, "", unix.MS_BIND, ""); err != nil {
				t.Fatal(err)
			}
		}
		if err := remove(filepath.Join(dir, "tree")); err != nil {
			t.Error(err)
		}
	})
	if _, err := os.Lstat(precious); err != nil {
		t.Error(err)
	}
}

const childEnv = "FASTLABEL_TREETEST_CHILD"

// TestChild is what TestNeedIsLoud runs in a process of its own. Elsewhere it
// does nothing; a skip would be one that no machine can mend.
func TestChild(t *testing.T) {
	if os.Getenv(childEnv) != "" {
		Need(t, "no-such-program")
	}
}

func TestNeedIsLoud(t *testing.T) {
	child := func(promise string) (string, error) {
		cmd := exec.Command(os.Args[0], "-test.run=^TestChild$", "-test.v")
		cmd.Env = append(os.Environ(), childEnv+"=1", namespaceEnv+"=", promiseEnv+"="+promise)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := child("root,ext4"); err != nil || !strings.Contains(out, "SKIP: TestChild") || !strings.Contains(out, "needs no-such-program") {
		t.Errorf("not promised: %v\n%s", err, out)
	}
	if out, err := child("no-such-program"); err == nil || !strings.Contains(out, "no-such-program was promised") {
		t.Errorf("promised: %v\n%s", err, out)
	}
}
