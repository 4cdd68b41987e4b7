// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"bytes"
	"errors"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/fastlabel/fastlabel/internal/secctx"
	"github.com/fastlabel/fastlabel/relabel/internal/commit"
	"github.com/fastlabel/fastlabel/test/treetest"
)

// untrusted runs the command as on a filesystem that has no trusted attributes, where
// it has to end with code.
func untrusted(t *testing.T, code int, args ...string) {
	t.Helper()
	cmd := exec.Command(treetest.Command(t), append([]string{"--label", newLabel}, args...)...)
	calls := []int{unix.SYS_FGETXATTR, unix.SYS_FSETXATTR, unix.SYS_FREMOVEXATTR, unix.SYS_GETXATTR, unix.SYS_REMOVEXATTR}
	end := treetest.Supervise(t, cmd, calls, func(n treetest.Notice) (a treetest.Answer) {
		if n.Begins(t, 1, "trusted.") {
			a.Errno = syscall.ENOTSUP
		}
		return a
	})
	if end.Code != code {
		t.Errorf("%q: exit code %d, not %d\n%s%s", args, end.Code, code, end.Stdout, end.Stderr)
	}
}

// userName is the attribute that stands for a trusted one.
func userName(name string) string { return "user" + strings.TrimPrefix(name, "trusted") }

func userAttr(t *testing.T, root, name string) []byte {
	t.Helper()
	buf := make([]byte, 4096)
	n, err := unix.Getxattr(root, userName(name), buf)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return buf[:n]
}

// TestShardsUser: where there are no trusted attributes shards leave user attributes, by
// which they find each other; who commits reads everything, whatever these say.
func TestShardsUser(t *testing.T) {
	treetest.Need(t, "root", "seccomp")
	for name, test := range map[string]struct {
		forge func(t *testing.T, root string) // after shard 0, as the owner of the volume could
		code  int
	}{
		"done":    {func(t *testing.T, root string) { untrusted(t, 0, "--shard", "1/2", root) }, 0},
		"missing": {func(*testing.T, string) {}, 4},
		"forged": {func(t *testing.T, root string) {
			proof := userAttr(t, root, commit.ProofName(0))
			if err := unix.Setxattr(root, userName(commit.ProofName(1)), proof, 0); err != nil {
				t.Fatal(err)
			}
		}, 0},
		"claim gone": {func(t *testing.T, root string) {
			if err := unix.Removexattr(root, userName(commit.ClaimName)); err != nil {
				t.Fatal(err)
			}
		}, 4},
	} {
		t.Run(name, func(t *testing.T) {
			root := grow(t, on(t, "ext4"), divided)
			untrusted(t, 0, "--shard", "0/2", root)
			if l := labelOf(t, root); !secctx.IsSeal(l, newLabel) {
				t.Errorf("the root has %s", l)
			}
			test.forge(t, root)
			untrusted(t, test.code, "--commit-shards", "2", root)
			if done := vouching(t, root, oldLabel, newLabel) == newLabel; done != (test.code == 0) {
				t.Errorf("it vouches: %t", done)
			}
			noShards(t, root, 2)
			if test.code != 0 {
				return
			}
			for _, name := range []string{commit.ClaimName, commit.ProofName(0), commit.ProofName(1)} {
				if _, err := unix.Getxattr(root, userName(name), nil); !errors.Is(err, unix.ENODATA) {
					t.Errorf("%s is left: %v", userName(name), err)
				}
			}
		})
	}
}

// TestShardsUserSeal: a claim that its owner wrote does not keep the root from being sealed.
func TestShardsUserSeal(t *testing.T) {
	treetest.Need(t, "root", "seccomp")
	other, root := grow(t, on(t, "ext4"), divided), grow(t, on(t, "ext4"), divided)
	untrusted(t, 0, "--shard", "0/2", other)
	claim := bytes.ReplaceAll(userAttr(t, other, commit.ClaimName), []byte("seal="+labelOf(t, other)), []byte("seal="+oldLabel))
	if err := unix.Setxattr(root, userName(commit.ClaimName), claim, 0); err != nil {
		t.Fatal(err)
	}
	untrusted(t, 0, "--shard", "0/2", root)
	if l := labelOf(t, root); !secctx.IsSeal(l, newLabel) {
		t.Errorf("the root has %s", l)
	}
}
