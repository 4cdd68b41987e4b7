// SPDX-License-Identifier: Apache-2.0

//go:build linux

package inside

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/fastlabel/fastlabel/test/treetest"
)

func enforce(t *testing.T, how string) {
	t.Helper()
	treetest.Must(t, os.WriteFile("/sys/fs/selinux/enforce", []byte(how), 0))
}

// TestPermissive: a permissive kernel stores what its policy does not know, and
// we warn, for people and for programs; not of what it does know. A process
// without CAP_MAC_ADMIN is refused all the same.
func TestPermissive(t *testing.T) {
	const unknown, warning = "system_u:object_r:no_such_t:s0", "does not know the label"
	enforce(t, "0")
	t.Cleanup(func() { enforce(t, "1") })
	each(t, func(t *testing.T, dir string) {
		root := grow(t, dir)
		if out := label(t, 0, "--label", labelA, root); strings.Contains(out, warning) {
			t.Errorf("warned of a known label: %s", out)
		}
		told(t, label(t, 0, "--label", unknown, root), warning)
		all(t, root, unknown)
		label(t, 0, "--label", labelA, root)
		told(t, label(t, 0, "--json", "--label", unknown, root), `"notes":["the loaded policy `+warning)
		label(t, 0, "--label", labelA, root)
		all(t, root, labelA)

		own(t, root, 1000)
		before := treetest.Read(t, root)
		out, code := asUser(t, &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 1000, Gid: 1000}}, "--label", unknown, root)
		if code != 1 || !strings.Contains(out, "the kernel refuses the label") {
			t.Errorf("without CAP_MAC_ADMIN: exit code %d: %s", code, out)
		}
		unchanged(t, root, before)
	})
}

// own gives a tree to a user.
func own(t *testing.T, root string, uid int) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, uid, uid)
	})
	treetest.Must(t, err)
}

// asUser runs the command as another user.
func asUser(t *testing.T, attr *syscall.SysProcAttr, args ...string) (string, int) {
	t.Helper()
	cmd := exec.Command(command, args...)
	cmd.SysProcAttr, cmd.Dir, cmd.Env = attr, "/", []string{"HOME=/nowhere"}
	out, _ := cmd.CombinedOutput() // its code says the same
	if cmd.ProcessState == nil {
		t.Fatal("it did not start: ", string(out))
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// TestRootless: an ordinary user, and root of a user namespace as podman makes
// it, label what is theirs, and are told what is not.
func TestRootless(t *testing.T) {
	const user, subordinate = 1000, 100000
	ids := func(id int) []syscall.SysProcIDMap {
		return []syscall.SysProcIDMap{{ContainerID: 0, HostID: id, Size: 1}, {ContainerID: 1, HostID: subordinate, Size: 65536}}
	}
	users := map[string]struct {
		attr   *syscall.SysProcAttr
		others map[string]int // files of other users, and who owns them
		denied []string       // of these
	}{
		"user": {
			&syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user, Gid: user}},
			map[string]int{"a/f1": 0, "a/f2": subordinate + 5},
			[]string{"a/f1", "a/f2"},
		},
		"namespace": {
			&syscall.SysProcAttr{
				Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
				UidMappings: ids(user), GidMappings: ids(user), GidMappingsEnableSetgroups: true,
				Credential: &syscall.Credential{Uid: 0, Gid: 0},
			},
			map[string]int{"a/f1": 0, "a/f2": subordinate + 5},
			[]string{"a/f1"},
		},
	}
	for name, u := range users {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, dir string) {
				root := home(t, dir)
				own(t, root, user)
				for f, owner := range u.others {
					treetest.Must(t, os.Lchown(filepath.Join(root, f), owner, owner))
				}
				out, code := asUser(t, u.attr, "-v", "--label", labelA, root)
				t.Log(out)
				if n := strings.Count(out, "operation not permitted"); code != 1 || n != len(u.denied) {
					t.Errorf("exit code %d, %d entries refused", code, n)
				}
				for path, got := range treetest.Read(t, root) {
					refused := slices.Contains(u.denied, path)
					if refused && (got != oldLabel || !strings.Contains(out, path)) {
						t.Errorf("%s has %s, or is not named", path, got)
					}
					if want := !refused && path != "."; (got == labelA) != want {
						t.Errorf("%s has %s", path, got)
					}
				}
				for _, d := range u.denied {
					treetest.Must(t, os.Lchown(filepath.Join(root, d), user, user))
				}
				if out, code := asUser(t, u.attr, "--label", labelA, root); code != 0 {
					t.Errorf("exit code %d: %s", code, out)
				}
				all(t, root, labelA)
				may(t, false, domainB, filepath.Join(root, "top"))
			})
		})
	}
}
