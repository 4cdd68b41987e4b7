// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/fastlabel/fastlabel/internal/secctx"
)

// TestDropinErrors: what callers of go-selinux ask of an error is answered so
// that they lose none.
func TestDropinErrors(t *testing.T) {
	entry := func(p string, e syscall.Errno) error { return &fs.PathError{Op: "setxattrat", Path: p, Err: e} }
	several := func(all ...error) error { return &IncompleteError{Failed: int64(len(all)), First: all} }
	unlabelled := &fs.PathError{Op: "relabel", Path: "/v", Err: fmt.Errorf("%w: mounted with context=", syscall.ENOTSUP)}
	for _, c := range []struct {
		name string
		err  error
		is   []error
		not  []error
		path string // of a single failure
	}{
		{"mounted with context=", unlabelled, []error{unix.ENOTSUP, errors.ErrUnsupported}, nil, "/v"},
		{"the root's errno", fmt.Errorf("%w: no labels", entry("/v", unix.ENOTSUP)), []error{unix.ENOTSUP}, []error{unix.EPERM}, "/v"},
		{"one", entry("/v/f", unix.EPERM), []error{unix.EPERM}, []error{unix.ENOTSUP}, "/v/f"},
		{"one without labels", entry("/v/f", unix.ENOTSUP), []error{unix.ENOTSUP}, nil, "/v/f"},
		{"all without labels", several(entry("/v/f", unix.ENOTSUP), entry("/v/g", unix.ENOTSUP)), []error{unix.ENOTSUP}, []error{unix.EPERM}, ""},
		{"some without labels", several(entry("/v/f", unix.ENOTSUP), entry("/v/g", unix.EPERM)), []error{unix.EPERM}, []error{unix.ENOTSUP, errors.ErrUnsupported}, ""},
		{"the last without labels", several(entry("/v/g", unix.EPERM), entry("/v/f", unix.ENOTSUP)), []error{unix.EPERM}, []error{unix.ENOTSUP, errors.ErrUnsupported}, ""},
		{"the kernel refuses the label", fmt.Errorf("the label: %w", entry("/v/f", unix.EINVAL)), []error{unix.EINVAL}, nil, "/v/f"},
	} {
		err := worded(c.err, "lsetxattr(label=L)")
		for _, is := range c.is {
			if !errors.Is(err, is) {
				t.Errorf("%s: %v is not %v", c.name, err, is)
			}
		}
		for _, not := range c.not {
			if errors.Is(err, not) {
				t.Errorf("%s: %v is %v", c.name, err, not)
			}
		}
		if some, are := err.(*IncompleteError); are {
			if text := errors.Join(some.First...).Error(); c.path != "" || some.Failed != 2 || !strings.Contains(text, "/v/f: ") || !strings.Contains(text, "/v/g: ") {
				t.Errorf("%s: %v", c.name, text)
			}
		} else if at, is := err.(*os.PathError); !is || at.Path != c.path || at.Op != "lsetxattr(label=L)" {
			t.Errorf("%s: %#v", c.name, err)
		} else if _, bare := at.Err.(syscall.Errno); !bare {
			t.Errorf("%s: %#v", c.name, at.Err)
		}
	}
	late := &fs.PathError{Op: "relabel", Path: "/v", Err: fmt.Errorf("%w: by now", ErrOvertaken)}
	if at, is := worded(late, "").(*fs.PathError); !is || !errors.Is(at, ErrOvertaken) || at.Error() != late.Error() {
		t.Error(at)
	}
	if text := (&IncompleteError{Failed: 2}).Error(); !strings.HasPrefix(text, "2 entries failed") { // as a caller's tests make one
		t.Error(text)
	}
	r := newRelabelling(Options{}, inner{}, "/v", newLabel)
	for i := range 1000 {
		r.account.fail(fmt.Sprint("/v/", i), "setxattr", unix.EPERM)
	}
	r.account.fail("/v/late", "setxattr", unix.ENOSPC)
	var some *IncompleteError
	err := worded(r.failures(), "lsetxattr(label=L)")
	if !errors.Is(err, unix.ENOSPC) || !errors.Is(err, unix.EPERM) || !errors.As(err, &some) || len(some.First) != mostFirst+1 {
		t.Error(err)
	}
}

// TestDropinRefusal: a refusal says why in go-selinux's words, and is ours too.
func TestDropinRefusal(t *testing.T) {
	for _, recurse := range []bool{false, true} {
		err := Chcon("/var/lib/../../etc///", newLabel, recurse)
		if !errors.Is(err, ErrRefused) || pathOf(err) != "/var/lib/../../etc" || !strings.HasPrefix(err.Error(), "SELinux relabeling of /var/lib/../../etc is not allowed: /etc is a system directory") {
			t.Fatal(err)
		}
	}
	if _, err := Inspect("/none", "container_file_t", SkipTop); !errors.Is(err, ErrLabel) {
		t.Error(err)
	}
	err := Chcon("/none", "container_file_t", true)
	var why *secctx.Error
	if !errors.As(err, &why) || !why.BareType || !errors.Is(err, ErrLabel) || !errors.Is(err, unix.EINVAL) || pathOf(err) != "/none" {
		t.Error(err)
	}
}
