// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"

	"github.com/fastlabel/fastlabel/internal/secctx"
	"github.com/fastlabel/fastlabel/relabel/internal/mounts"
	"github.com/fastlabel/fastlabel/relabel/internal/sys"
)

// askPolicy has the kernel look at the label once, where SELinux is on, before
// anything bears it: a label that the loaded policy does not know would be refused
// entry by entry, when a seal that it does know may be on the root already. And
// it may print another than was asked for, as where a type has an alias; only
// what it prints can be read back.
//
// Who may not ask goes on with the label as it is: the kernel says so in time.
func (r *run) askPolicy() error {
	known, err := (&proc{r.proc}).knows(r.want)
	switch {
	case errors.Is(err, syscall.EINVAL) && (&proc{r.proc}).enforcing():
		return fmt.Errorf("the loaded policy does not know the label %s: %w", r.want, syscall.EINVAL)
	case errors.Is(err, syscall.EINVAL):
		r.note("the loaded policy does not know the label %s: SELinux is permissive here, and lets a process with CAP_MAC_ADMIN store it; to each check it counts as unlabeled_t", r.want)
	case err == nil && known != "":
		r.want = known
	}
	return nil
}

// proc is where the loaded policy is found.
type proc struct{ *mounts.Proc }

// knows has the kernel print the label as it will be read back.
func (p *proc) knows(label string) (string, error) {
	f, err := p.openPolicy("context", os.O_RDWR)
	if err != nil {
		return "", err
	}
	defer f.Close()
	if _, err := f.WriteString(label); err != nil {
		return "", err
	}
	buf := make([]byte, 4096)
	n, err := f.Read(buf)
	return secctx.Trim(buf[:n]), err
}

func (p *proc) enforcing() bool {
	f, err := p.openPolicy("enforce", os.O_RDONLY)
	if err != nil {
		return true
	}
	defer f.Close()
	buf := make([]byte, 1)
	_, err = f.Read(buf)
	return err != nil || buf[0] != '0'
}

// openPolicy opens a file of the kernel's SELinux interface. That is mounted
// elsewhere than it should be only in a container which is shown the host's.
func (p *proc) openPolicy(name string, flags int) (*os.File, error) {
	if withoutSELinux() {
		return nil, os.ErrNotExist
	}
	f, err := openSelinux(selinuxPoint+"/"+name, flags)
	if !errors.Is(err, os.ErrNotExist) {
		return f, err
	}
	if p.Mounts == nil {
		if p.Mounts, err = p.ReadTable(); err != nil {
			return nil, err
		}
	}
	for _, m := range p.Mounts {
		if m.FSType != "selinuxfs" || m.Point == selinuxPoint {
			continue
		}
		if f, err = openSelinux(m.Point+"/"+name, flags); !errors.Is(err, os.ErrNotExist) {
			return f, err
		}
	}
	return nil, os.ErrNotExist
}

const selinuxPoint = "/sys/fs/selinux"

// openSelinux opens a file of selinuxfs. In any other filesystem there is none.
func openSelinux(path string, flags int) (*os.File, error) {
	fd, e := sys.Openat(sys.AtFdcwd, sys.Cname(path), flags|sys.OpenRead, 0)
	if e != 0 {
		return nil, pathError("openat", path, e)
	}
	if kind, e := sys.FSType(fd); e != 0 || kind != sys.Selinux {
		sys.Close(fd) // something is mounted over it
		return nil, os.ErrNotExist
	}
	return os.NewFile(uintptr(fd), path), nil
}

// withoutSELinux says that this kernel has no SELinux, or that it is off, which
// cannot change before the next boot.
var withoutSELinux = sync.OnceValue(func() bool {
	known, err := os.ReadFile("/proc/filesystems")
	return err == nil && !strings.Contains(string(known), "selinuxfs")
})
