// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"github.com/fastlabel/fastlabel/internal/secctx"
	"github.com/fastlabel/fastlabel/internal/sys"
	"github.com/fastlabel/fastlabel/internal/xattrio"
)

// Whether a process may give an entry a label the kernel asks its policy (selinux_inode_setxattr):
// relabelfrom on the label that the entry has, relabelto on the new one, whether an entry may go
// from the one to the other at all (validatetrans), and whether the new label may lie on this
// filesystem (associate). No is EACCES or, of validatetrans, EPERM, as of a stranger's or an
// immutable file. Which it was is asked after a failure, and decides nothing.

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

// mostAnswers bounds the answers. A volume of more labels has them asked again.
const mostAnswers = 64

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

// Why returns e with the reason why t, which was to get the label want, answered that: its flags,
// or the policy, where one is loaded. If that is not known it returns e. io is how t is reached;
// now is called with the call that comes next.
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
	io.Attr = xattrio.New("").Attr // with room for the whole label
	now(io.Reads(t))
	if _, unread := io.Pin(t); unread != 0 {
		return e
	}
	defer io.Unpin(t)
	has, _, unread := io.Read(t)
	if unread != 0 {
		return e
	}
	return p.denial(question{has.String(), want, st.Kind, e})
}

// denial returns the errno of q with what the policy answers.
func (p *Policy) denial(q question) error {
	if q.have == "" || q.e != syscall.EACCES && q.e != syscall.EPERM || int(q.kind) >= len(classes) || classes[q.kind] == "" {
		return q.e
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	why, known := p.known[q]
	if !known {
		why = q.ask(classes[q.kind])
		if p.known == nil || len(p.known) == mostAnswers {
			p.known = make(map[question]string)
		}
		p.known[q] = why
	}
	if why == "" {
		return q.e
	}
	return &Denied{q.e, why, true}
}

// ask returns what the policy refuses this process when it gives an entry of the class the label;
// "" if it is not the policy.
func (q question) ask(class string) string {
	// Read as the thread's: that needs no permission, and that of another thread is process:getattr.
	runtime.LockOSThread()
	text, err := os.ReadFile("/proc/thread-self/attr/current")
	runtime.UnlockOSThread()
	if err != nil {
		return ""
	}
	process := secctx.Trim(text)
	if q.e == syscall.EPERM {
		if index, err := number("class/" + class + "/index"); err == nil {
			_, err = ask("validatetrans", os.O_WRONLY, fmt.Sprintf("%s %s %d %s", q.have, q.want, index, process))
			if errors.Is(err, syscall.EPERM) {
				return fmt.Sprintf("SELinux lets no %s go from %s to %s (validatetrans)", class, q.have, q.want)
			}
		}
		return ""
	}
	var lacks []string
	for _, p := range [...][2]string{{"relabelfrom", q.have}, {"relabelto", q.want}} {
		may, err := allows(process, p[1], class, p[0])
		if err != nil {
			return fmt.Sprintf("%s may lack relabelfrom on %s or relabelto on %s (%s); see: ausearch -m avc -ts recent", process, q.have, q.want, class)
		}
		if !may {
			lacks = append(lacks, "no "+p[0]+" on "+p[1])
		}
	}
	if lacks != nil {
		return fmt.Sprintf("SELinux allows %s %s (%s)", process, strings.Join(lacks, " and "), class)
	}
	return fmt.Sprintf("SELinux allows %s relabelfrom on %s and relabelto on %s (%s): another permission is missing: see the audit log", process, q.have, q.want, class)
}

func allows(process, on, class, permission string) (bool, error) {
	index, err1 := number("class/" + class + "/index")
	bit, err2 := number("class/" + class + "/perms/" + permission)
	if err := cmp.Or(err1, err2); err != nil {
		return false, err
	}
	text, err := ask("access", os.O_RDWR, fmt.Sprintf("%s %s %d", process, on, index))
	if err != nil {
		return false, err
	}
	// The first of several fields is the permissions, a bit each, from 1 on.
	first, _, _ := strings.Cut(text, " ")
	allowed, err := strconv.ParseUint(first, 16, 32)
	return allowed>>(bit-1)&1 == 1, err
}

// number reads a file that has a number from 1 on.
func number(name string) (uint64, error) {
	text, err := ask(name, os.O_RDONLY, "")
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseUint(text, 10, 32)
	if err == nil && n == 0 {
		err = strconv.ErrRange
	}
	return n, err
}
