// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"github.com/fastlabel/fastlabel/internal/secctx"
	"github.com/fastlabel/fastlabel/relabel/internal/sys"
	"github.com/fastlabel/fastlabel/relabel/internal/xattrio"
)

// Whether a process may give an entry a label the kernel asks its policy three
// times (selinux_inode_setxattr): relabelfrom on the label that the entry has,
// relabelto on the new one, and whether an entry may go from the one to the other
// at all (validatetrans); and then whether the new label may lie on this
// filesystem (associate). The answer is EACCES to all but the third, and EPERM
// to that, as to a stranger's or an immutable file. What it was is asked after a
// failure, and never goes into what is done.

// Denied is an errno with what is known of its reason.
type Denied struct {
	Errno   sys.Errno
	Why     string
	SELinux bool // it was the policy
}

func (e *Denied) Error() string { return e.Errno.Error() + ": " + e.Why }

// Unwrap is the errno.
func (e *Denied) Unwrap() error { return e.Errno }

// question is one to the policy about this process.
type question struct {
	have, want string
	kind       sys.Kind
	e          sys.Errno
}

// keepAnswers bounds the answers. A volume of more labels has them asked again.
const keepAnswers = 64

// classes are the policy's names for kinds of files.
var classes = [...]string{
	syscall.DT_REG: "file", syscall.DT_DIR: "dir", syscall.DT_LNK: "lnk_file", syscall.DT_SOCK: "sock_file",
	syscall.DT_FIFO: "fifo_file", syscall.DT_CHR: "chr_file", syscall.DT_BLK: "blk_file",
}

// locked is the reason of an EPERM that root gets too, or "".
func locked(st sys.Stat, e sys.Errno) string {
	switch {
	case e == syscall.EPERM && st.Immutable:
		return "it is immutable (chattr -i ends that)"
	case e == syscall.EPERM && st.Append:
		return "it is append-only (chattr -a ends that)"
	}
	return ""
}

// Why says why t, which was to get the label want, answered e: by its flags, or by the
// policy, where one is loaded. If it is not known, that is e. io is how t is reached; now
// is told which call comes next.
func (p *Policy) Why(io xattrio.IO, t xattrio.Target, want string, e sys.Errno, now func(xattrio.SyscallKind)) error {
	now(xattrio.Statx)
	st, unread := t.Stat()
	if unread != 0 {
		return e
	}
	if why := locked(st, e); why != "" {
		return &Denied{Errno: e, Why: why}
	}
	if p == nil {
		return e
	}
	io.Attr = sys.NewAttr(xattrio.Attribute, "") // with room for the whole label
	now(io.Reads(t))
	if _, unread := io.Pin(t); unread != 0 {
		return e
	}
	defer io.Unpin(t)
	has, _, unread := io.Read(t)
	if unread != 0 || has.Long {
		return e
	}
	return p.Denial(has.String(), want, st.Kind, e)
}

// Denial is e with what the policy says of it, for an entry that has the label have
// and was to have want.
func (p *Policy) Denial(have, want string, kind sys.Kind, e sys.Errno) error {
	if have == "" || e != syscall.EACCES && e != syscall.EPERM || int(kind) >= len(classes) || classes[kind] == "" {
		return e
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	ask := question{have, want, kind, e}
	why, known := p.known[ask]
	if !known {
		why = p.refused(have, want, classes[kind], e)
		if p.known == nil || len(p.known) == keepAnswers {
			p.known = make(map[question]string)
		}
		p.known[ask] = why
	}
	if why == "" {
		return e
	}
	return &Denied{e, why, true}
}

// refused says what the policy refuses this process when it gives an entry of
// the class the label want in place of have; "" if it is not the policy.
func (p *Policy) refused(have, want, class string, e sys.Errno) string {
	process, err := context()
	if err != nil {
		return ""
	}
	if e == syscall.EPERM {
		if !p.invalidates(have, want, class, process) {
			return ""
		}
		return fmt.Sprintf("SELinux lets no %s go from %s to %s (validatetrans)", class, have, want)
	}
	from, err1 := p.allows(process, have, class, "relabelfrom")
	to, err2 := p.allows(process, want, class, "relabelto")
	var lacks []string
	if err1 == nil && !from {
		lacks = append(lacks, "no relabelfrom on "+have)
	}
	if err2 == nil && !to {
		lacks = append(lacks, "no relabelto on "+want)
	}
	switch {
	case lacks != nil:
		return fmt.Sprintf("SELinux allows %s %s (%s)", process, strings.Join(lacks, " and "), class)
	case err1 != nil || err2 != nil:
		return fmt.Sprintf("%s may lack relabelfrom on %s or relabelto on %s (%s): the audit log tells", process, have, want, class)
	}
	return fmt.Sprintf("SELinux allows %s relabelfrom on %s and relabelto on %s (%s): it is something else", process, have, want, class)
}

// context is the security context of this process. It is read as the thread's:
// that needs no permission, and that of another thread is process:getattr.
func context() (string, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	text, err := os.ReadFile("/proc/thread-self/attr/current")
	return secctx.Trim(text), err
}

// allows asks the loaded policy for one permission.
func (p *Policy) allows(process, on, class, permission string) (bool, error) {
	index, err := p.number("class/" + class + "/index")
	if err != nil {
		return false, err
	}
	bit, err := p.number("class/" + class + "/perms/" + permission)
	if err != nil {
		return false, err
	}
	text, err := p.ask("access", os.O_RDWR, fmt.Sprintf("%s %s %d", process, on, index))
	if err != nil {
		return false, err
	}
	// The first of several fields is the permissions, a bit each, from 1 on.
	first, _, _ := strings.Cut(text, " ")
	allowed, err := strconv.ParseUint(first, 16, 32)
	return allowed>>(bit-1)&1 == 1, err
}

// invalidates asks the loaded policy whether nothing of the class may go from
// one label to the other.
func (p *Policy) invalidates(have, want, class, process string) bool {
	index, err := p.number("class/" + class + "/index")
	if err != nil {
		return false
	}
	_, err = p.ask("validatetrans", os.O_WRONLY, fmt.Sprintf("%s %s %d %s", have, want, index, process))
	return errors.Is(err, syscall.EPERM)
}

// number reads a file that holds a number from 1 on.
func (p *Policy) number(name string) (uint64, error) {
	text, err := p.ask(name, os.O_RDONLY, "")
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseUint(text, 10, 32)
	if err == nil && n == 0 {
		err = strconv.ErrRange
	}
	return n, err
}
