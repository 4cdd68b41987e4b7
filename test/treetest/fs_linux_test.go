// SPDX-License-Identifier: Apache-2.0

package treetest

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestEachGivesItsFilesystem(t *testing.T) {
	magic := map[string]int64{
		"ext4": unix.EXT4_SUPER_MAGIC, "xfs": unix.XFS_SUPER_MAGIC,
		"btrfs": unix.BTRFS_SUPER_MAGIC, "tmpfs": unix.TMPFS_MAGIC,
	}
	check := func(t *testing.T, name, dir string) {
		t.Helper()
		var st unix.Statfs_t
		if err := unix.Statfs(dir, &st); err != nil || int64(st.Type) != magic[name] {
			t.Errorf("%s is of type %#x, %v", dir, st.Type, err)
		}
		if names, err := os.ReadDir(dir); err != nil || len(names) != 0 {
			t.Errorf("%s is not empty: %v, %v", dir, names, err)
		}
	}
	var dirs []string
	Each(t, func(t *testing.T, dir string) {
		check(t, filepath.Base(t.Name()), dir)
		dirs = append(dirs, dir)
	})
	for _, dir := range dirs {
		if _, err := os.Lstat(dir); !os.IsNotExist(err) {
			t.Errorf("%s is still there: %v", dir, err)
		}
	}
	for _, f := range Filesystems(t) {
		check(t, f.Name, f.Dir(t))
	}
}

func TestFreshIsGoneAfterwards(t *testing.T) {
	for _, name := range []string{"ext4", "xfs", "btrfs", "tmpfs"} {
		var dir string
		t.Run(name, func(t *testing.T) {
			dir = Fresh(t, name)
			if n := Count(t, dir); n.All != 1 {
				t.Errorf("not empty: %+v", n)
			}
			Build(t, filepath.Join(dir, "sub"), Load(t, "nested-mounts"))
		})
		if dir == "" {
			continue // it was skipped, and said so
		}
		if left, err := mountsBelow(bench.scratch); err != nil || strings.Contains(strings.Join(left, "\n"), dir) {
			t.Errorf("still mounted: %q, %v", left, err)
		}
	}
}

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

// TestChild is what other tests here run in a process of its own. Elsewhere it
// does nothing; a skip would be one that no machine can mend.
func TestChild(t *testing.T) {
	switch os.Getenv(childEnv) {
	case "":
	case "need":
		Need(t, "no-such-program")
	case "busy", "busy-shared":
		dir := ""
		if Need(t, "tmpfs"); os.Getenv(childEnv) == "busy" {
			dir = Fresh(t, "tmpfs")
		} else {
			dir = bench.kinds["tmpfs"].dir
		}
		if _, err := unix.Open(dir, unix.O_RDONLY|unix.O_CLOEXEC, 0); err != nil {
			t.Fatal(err)
		}
	default:
		dir := Fresh(t, "ext4")
		Build(t, dir, Load(t, "nested-mounts"))
		var st unix.Stat_t
		if err := unix.Stat(dir, &st); err != nil {
			t.Fatal(err)
		}
		file := fmt.Sprintf("/sys/dev/block/%d:%d/loop/backing_file", unix.Major(st.Dev), unix.Minor(st.Dev))
		image, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Printf("\nmounted %s %s\n", file, strings.Fields(string(image))[0])
		if os.Getenv(childEnv) == "panic" {
			panic("as asked")
		}
		time.Sleep(Patience)
	}
}

// child prepares a child that runs TestChild in the outer namespace's place.
func child(t *testing.T, what string, env ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "-test.run=^TestChild$", "-test.v")
	cmd.Env = append(os.Environ(), append(env, childEnv+"="+what, namespaceEnv+"=")...)
	return cmd
}

// TestNothingOutlivesTheProcess ends a child with a mounted image by kill -9,
// SIGTERM and a panic, and waits for the loop device to let go of the image.
func TestNothingOutlivesTheProcess(t *testing.T) {
	Need(t, "root", "ext4")
	for what, sig := range map[string]os.Signal{"kill": unix.SIGKILL, "term": unix.SIGTERM, "panic": nil} {
		t.Run(what, func(t *testing.T) {
			cmd := child(t, what, "TMPDIR="+t.TempDir())
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			var file, image string
			for lines := bufio.NewScanner(out); file == "" && lines.Scan(); {
				if f := strings.Fields(lines.Text()); len(f) == 3 && f[0] == "mounted" {
					file, image = f[1], f[2]
				}
			}
			if sig != nil {
				if err := cmd.Process.Signal(sig); err != nil {
					t.Error(err)
				}
			}
			if file == "" {
				t.Error("the child mounted nothing")
			}
			if err := cmd.Wait(); err == nil {
				t.Error("the child ended well")
			}
			Wait(t, file+" to let go of "+image, func() bool {
				held, err := os.ReadFile(file)
				return err != nil || !strings.HasPrefix(string(held), image)
			})
		})
	}
}

func TestNeedIsLoud(t *testing.T) {
	out, err := child(t, "need", promiseEnv+"=root,ext4").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "SKIP: TestChild") ||
		!strings.Contains(string(out), "needs no-such-program") {
		t.Errorf("not promised: %v\n%s", err, out)
	}
	out, err = child(t, "need", promiseEnv+"=no-such-program").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "no-such-program was promised") {
		t.Errorf("promised: %v\n%s", err, out)
	}
}

// TestHeldFilesystemFails is the control of the clean-up: a descriptor that a
// test forgets must show.
func TestHeldFilesystemFails(t *testing.T) {
	Need(t, "root")
	for _, what := range []string{"busy", "busy-shared"} {
		out, err := child(t, what).CombinedOutput()
		if err == nil || !strings.Contains(string(out), "which something still holds") {
			t.Errorf("%s: %v\n%s", what, err, out)
		}
	}
}
