// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fastlabel/fastlabel/test/treetest"
)

var (
	files   = flag.Int("files", 100_000, "how many files the volume has")
	update  = flag.Bool("update", false, "write the screens to testdata")
	picture = flag.String("picture", "", "the file to write the picture to")
)

func TestMain(m *testing.M) { os.Exit(treetest.Main(m)) }

func run(t *testing.T, argv ...string) {
	t.Helper()
	if out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", strings.Join(argv, " "), err, out)
	}
}

// perDirectory is how many files a directory has.
const perDirectory = 1000

// volume makes a directory with bin/fastlabel in it and an ext4 mounted at pv,
// with n empty files in directories.
func volume(t *testing.T, n int) (dir string) {
	t.Helper()
	treetest.Need(t, "root", "ext4", "tmux", "chattr", "go")
	dir = t.TempDir()
	run(t, "go", "build", "-C", "../..", "-trimpath", "-o", filepath.Join(dir, "bin", "fastlabel"), "./cmd/fastlabel")
	image, pv := filepath.Join(dir, "image"), filepath.Join(dir, "pv")
	if err := os.Mkdir(pv, 0o755); err != nil {
		t.Fatal(err)
	}
	run(t, "truncate", "-s", "4G", image)
	run(t, "mkfs.ext4", "-q", "-F", "-N", fmt.Sprint(n+n/10), image)
	run(t, "mount", "-o", "loop", image, pv)
	t.Cleanup(func() { run(t, "umount", pv) })
	if err := os.Remove(filepath.Join(pv, "lost+found")); err != nil {
		t.Fatal(err)
	}
	for i := 0; i < n; i += perDirectory {
		sub := filepath.Join(pv, fmt.Sprintf("d%04d", i/perDirectory))
		if err := os.Mkdir(sub, 0o755); err != nil {
			t.Fatal(err)
		}
		for k := range min(perDirectory, n-i) {
			if err := os.WriteFile(filepath.Join(sub, fmt.Sprintf("f%03d", k)), nil, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	return dir
}

// immutable makes a file that nobody can label, not even root.
func immutable(t *testing.T, path string) {
	t.Helper()
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	run(t, "chattr", "+i", path)
	t.Cleanup(func() { _ = exec.Command("chattr", "-i", path).Run() }) // the test may have done it
}
