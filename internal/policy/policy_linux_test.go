// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"fmt"
	"syscall"
	"testing"

	"github.com/fastlabel/fastlabel/internal/sys"
)

const want = "system_u:object_r:container_file_t:s0"

// TestDenial: whatever is known of the reason, the errno is found; and what is kept
// of the answers is bounded, and goes by each part of the question.
func TestDenial(t *testing.T) {
	p := new(Policy)
	for i := range 3 * mostAnswers {
		err := p.denial(question{fmt.Sprintf("system_u:object_r:t%d:s0", i), want, sys.KindDir, syscall.EACCES})
		if !errors.Is(err, syscall.EACCES) {
			t.Fatal(err)
		}
		if len(p.known) != i%mostAnswers+1 {
			t.Fatalf("%d answers after %d questions", len(p.known), i+1)
		}
	}
	p.known = nil
	ask := question{have: want, want: want, kind: sys.KindDir, e: syscall.EPERM}
	p.known = map[question]string{ask: "of that"}
	var denied *Denied
	if err := p.denial(ask); !errors.As(err, &denied) || !denied.SELinux || !errors.Is(err, syscall.EPERM) || err.Error() != "operation not permitted: of that" {
		t.Error(err)
	}
	for _, q := range []question{
		{"", want, sys.KindDir, syscall.EACCES},
		{want, want, sys.KindDir, syscall.EIO},
		{want, want, 255, syscall.EACCES},
		{want, want, 0, syscall.EACCES},
	} {
		if err := p.denial(q); err != error(q.e) {
			t.Errorf("%+v: %v", q, err)
		}
	}
	if len(p.known) != 1 {
		t.Errorf("%d answers, where the policy was not to be asked", len(p.known))
	}
}

func TestLocked(t *testing.T) {
	for _, c := range []struct {
		st   sys.Stat
		e    sys.Errno
		want string
	}{
		{sys.Stat{Immutable: true}, syscall.EPERM, "it is immutable (chattr -i ends that)"},
		{sys.Stat{Append: true}, syscall.EPERM, "it is append-only (chattr -a ends that)"},
		{sys.Stat{Immutable: true}, syscall.EACCES, ""},
		{sys.Stat{}, syscall.EPERM, ""},
	} {
		if why := locked(c.st, c.e); why != c.want {
			t.Errorf("%+v: %q", c, why)
		}
	}
}
