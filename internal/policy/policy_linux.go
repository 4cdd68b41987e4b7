// SPDX-License-Identifier: Apache-2.0

// Package policy asks the loaded policy for its form of a label, and why it refused one, through
// selinuxfs. No answer decides what is written.
package policy

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"

	"github.com/fastlabel/fastlabel/internal/secctx"
	"github.com/fastlabel/fastlabel/internal/sys"
)

// Policy is the loaded policy, as one run knows it.
type Policy struct {
	mu    sync.Mutex
	known map[question]string // the answers so far: where one file is refused, many are; guarded by mu
}

// Know has the kernel look at the label once, where SELinux is on, before anything has it: one that
// the loaded policy does not know would be refused when a seal may be on the root already. And it
// may print another, as where a type has an alias; only what it prints can be read back. For a
// process that may not ask the label stays as it is. A note is for the caller's report.
func (p *Policy) Know(label string) (printed, note string, err error) {
	printed, err = ask("context", os.O_RDWR, label)
	if errors.Is(err, syscall.EINVAL) {
		if now, err := ask("enforce", os.O_RDONLY, ""); err != nil || now != "0" {
			return label, "", fmt.Errorf("the loaded policy does not know the label %s: %w", label, syscall.EINVAL)
		}
		return label, fmt.Sprintf("the loaded policy does not know the label %s: SELinux is permissive here, and lets a process with CAP_MAC_ADMIN store it; to each check it counts as unlabeled_t", label), nil
	}
	if err != nil || printed == "" {
		printed = label
	}
	return printed, "", nil
}

// ask writes question, if there is one, to a file of selinuxfs, and returns what can be read there. It
// takes five calls: each Know asks. In any other filesystem there is none.
func ask(name string, flags int, question string) (string, error) {
	if Off() {
		return "", os.ErrNotExist
	}
	fd, e := sys.Openat(sys.AtFdcwd, sys.Cname("/sys/fs/selinux/"+name), flags|sys.OpenRead, 0)
	if e != 0 {
		return "", e
	}
	defer sys.Close(fd)
	if kind, e := sys.FSType(fd); e != 0 || kind != sys.Selinux {
		return "", os.ErrNotExist // something is mounted over it
	}
	if flags != os.O_RDONLY {
		if _, err := syscall.Write(fd, []byte(question)); err != nil || flags == os.O_WRONLY {
			return "", err
		}
	}
	answer := make([]byte, 4096) // the kernel gives a page at most
	n, err := syscall.Read(fd, answer)
	return secctx.Trim(answer[:max(0, n)]), err
}

// Off reports that this kernel has no SELinux, or that it is off, which
// cannot change before the next boot.
var Off = sync.OnceValue(func() bool {
	known, err := os.ReadFile("/proc/filesystems")
	return err == nil && !strings.Contains(string(known), "selinuxfs")
})
