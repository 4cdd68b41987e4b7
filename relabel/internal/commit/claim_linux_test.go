// SPDX-License-Identifier: Apache-2.0

package commit

import (
	"context"
	"errors"
	"os"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fastlabel/fastlabel/relabel/internal/sys"
	"github.com/fastlabel/fastlabel/test/treetest"
)

// TestClaim: what is written is read back, and nothing else is one.
func TestClaim(t *testing.T) {
	const want, old = "system_u:object_r:container_file_t:s0:c1,c2", "system_u:object_r:default_t:s0"
	for _, k := range []claim{{want, old, []string{"a", "b"}}, {want, "", nil}, {"a", "b", []string{"c"}}} {
		got, ok := parseClaim(k.String())
		if !ok || got.want != k.want || got.seal != k.seal || !slices.Equal(got.former, k.former) {
			t.Errorf("%q: %+v, %t", k, got, ok)
		}
	}
	for _, text := range []string{
		"", "version=2", "version=1 want=a seal=b former=c", "version=3 want=a seal=b former=c", "version=2 wants=a seal=b former=", "version=2 want=a seal=b former",
		"version=2 want=a seal=b", "version=2 want=a former=c", "version=2 want=a seal=b c former=", "version=2 want=a seal=b more=1 former=c d", "version=2 want=a seal=b more=1",
	} {
		if k, ok := parseClaim(text); ok {
			t.Errorf("%q is %+v", text, k)
		}
	}
}

// TestGiveWay: a run that has replaced the claim of another waits until that one has
// noticed, and no other run waits.
func TestGiveWay(t *testing.T) {
	f, err := os.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	synctest.Test(t, func(t *testing.T) {
		for _, replaced := range []bool{true, false} {
			c := &Root{Run: Run{FD: int(f.Fd())}, replaced: replaced}
			has, err := c.read()
			if err != nil {
				t.Fatal(err)
			}
			label := has.String()
			c.label.Store(&label)
			begin := time.Now()
			err = c.giveWay(t.Context())
			if waited := time.Since(begin); err != nil || (waited > Every) != replaced {
				t.Errorf("replaced: %t, waited for %v, %v", replaced, waited, err)
			}
		}
	})
}

// TestHeedClock: the root is looked at also where the clock was put back, and not more
// often than it has to be.
func TestHeedClock(t *testing.T) {
	c := &Root{}
	c.looked.Store(time.Now().Add(time.Hour).UnixNano())
	if !c.Due() || c.Due() {
		t.Error("it is due not once")
	}
}

// TestRevokeLate: once Close has returned, a late end of the run leaves the
// root alone: its descriptor may be that of another directory by then.
func TestRevokeLate(t *testing.T) {
	closed := false
	c := &Root{Run: Run{
		FD: -1, Want: "a",
		At: func(string) {},
		Note: func(format string, args ...any) {
			if closed { // it tried, on a descriptor that is another's by now
				t.Errorf("after Close: "+format, args...)
			}
		},
		Failed:  func() error { return nil },
		Written: func() int64 { return 0 },
	}}
	c.label.Store(&c.Want)
	if err := c.Close(t.Context(), context.Canceled); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	closed = true
	c.Revoke()
}

// TestClaimUnread: a claim that is too long to be read is one all the same.
func TestClaimUnread(t *testing.T) {
	treetest.Need(t, "root", "tmpfs", "plain")
	root := treetest.Fresh(t, "tmpfs")
	const label = "u:object_r:t:s0"
	treetest.Set(t, root, ".", label)
	fd, e := sys.Openat(sys.AtFdcwd, sys.Cname(root), sys.OpenDir, 0)
	if e != 0 {
		t.Fatal(e)
	}
	defer sys.Close(fd)
	if trust, _, _, e := Look(sys.Opened, fd, true, label); trust != Trusted || e != 0 {
		t.Errorf("without a claim: %d, %v", trust, e)
	}
	if err := unix.Fsetxattr(fd, ClaimName, make([]byte, 5000), 0); err != nil {
		t.Fatal(err)
	}
	if trust, _, _, e := Look(sys.Opened, fd, true, label); trust != Untrusted || e != 0 {
		t.Errorf("with a claim of 5,000 bytes: %d, %v", trust, e)
	}
	if c, err := Open(Run{FD: fd, Path: root, Want: label, At: func(string) {}}); err != nil || c.Right() {
		t.Errorf("the root is taken for right, or not for one: %v", err)
	}
}
