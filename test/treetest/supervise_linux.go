// SPDX-License-Identifier: Apache-2.0

package treetest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Notice is a system call that a supervised program is about to make.
type Notice struct {
	Nr   int       // the call's number
	Nth  int       // of all calls that are watched, from 1
	Same int       // of those with this number, from 1
	PID  int       // the thread
	Args [6]uint64 // as they lie in the registers
}

// On reports whether the call's first argument is a descriptor on the filesystem of path.
func (n Notice) On(t testing.TB, path string) bool {
	var fd, st unix.Stat_t
	Check(t, unix.Stat(fmt.Sprintf("/proc/%d/fd/%d", n.PID, n.Args[0]), &fd))
	Check(t, unix.Stat(path, &st))
	return fd.Dev == st.Dev
}

// Answer is what becomes of the call. The zero Answer lets it go on.
type Answer struct {
	Errno syscall.Errno // the call is not made and fails with this
	Kill  bool          // the call is not made: the program is killed
}

// Ended is how a supervised program ended.
type Ended struct {
	Calls  int  // how many of the calls that are watched were begun
	Killed bool // an Answer killed it
	Code   int  // its exit code; -1 after a signal
	Stdout string
	Stderr string
}

// Supervise runs cmd and asks decide before each system call whose number is
// in calls, one after the other, whatever thread makes it. The program knows
// nothing of it: a seccomp filter stops the call until this process answers.
// After Deny(t, cmd, ...) both hold; a call is to be in one of them only.
func Supervise(t testing.TB, cmd *exec.Cmd, calls []int, decide func(Notice) Answer) Ended {
	t.Helper()
	rules := make([]string, len(calls))
	for i, nr := range calls {
		rules[i] = strconv.Itoa(nr) + "=" + ask
	}
	filter(t, cmd, 3+len(cmd.ExtraFiles), rules)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	listener, err := startSupervised(cmd)
	if err != nil {
		t.Fatalf("%s: %v", cmd, err)
	}
	var e Ended
	// It is waited for at the same time: before Linux 6.11 a dead process is behind the
	// filter until it is, and the listener is not told that none is left.
	waited := make(chan error, 1)
	go func() { waited <- cmd.Wait() }()
	err = e.answer(listener, cmd.Process, decide)
	if err != nil {
		_ = cmd.Process.Kill()
	}
	_ = unix.Close(listener)
	var exit *exec.ExitError
	if ended := <-waited; ended != nil && !errors.As(ended, &exit) {
		err = errors.Join(err, ended)
	}
	if err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, stderr.Bytes())
	}
	e.Code, e.Stdout, e.Stderr = cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()
	return e
}

// startSupervised starts cmd behind a filter and gives the filter's listener.
func startSupervised(cmd *exec.Cmd) (listener int, err error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	ours, theirs := pair[0], os.NewFile(uintptr(pair[1]), "listener")
	defer func() { err = errors.Join(err, unix.Close(ours)) }()
	cmd.ExtraFiles = append(cmd.ExtraFiles, theirs)
	err = cmd.Start()
	_ = theirs.Close()
	if err != nil {
		return -1, err
	}
	listener, err = receiveFD(ours)
	if err != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		return -1, err
	}
	// On one processor the program goes on at once when it is answered
	// (Linux 6.6); it is only faster.
	_, _, _ = unix.Syscall(unix.SYS_IOCTL, uintptr(listener),
		unix.SECCOMP_IOCTL_NOTIF_SET_FLAGS, unix.SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP)
	return listener, nil
}

// struct seccomp_notif and struct seccomp_notif_resp of linux/seccomp.h.
type (
	notif struct {
		id    uint64
		pid   uint32
		flags uint32
		nr    int32
		arch  uint32
		ip    uint64
		args  [6]uint64
	}
	notifResp struct {
		id    uint64
		val   int64
		errno int32
		flags uint32
	}
)

// answer answers calls until no process is left that could make one.
func (e *Ended) answer(listener int, p *os.Process, decide func(Notice) Answer) error {
	same := map[int32]int{}
	for {
		poll := []unix.PollFd{{Fd: int32(listener), Events: unix.POLLIN}}
		switch _, err := unix.Poll(poll, -1); {
		case err == unix.EINTR:
			continue
		case err != nil:
			return fmt.Errorf("poll: %w", err)
		case poll[0].Revents&unix.POLLIN == 0:
			return nil // POLLHUP: the last thread behind the filter is gone
		}
		var n notif
		switch err := ioctl(listener, unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(&n)); err {
		case 0:
		case unix.ENOENT, unix.EINTR: // it died, or was interrupted
			continue
		default:
			return fmt.Errorf("receive a notification: %w", err)
		}
		e.Calls++
		same[n.nr]++
		a := Answer{Kill: true} // a dead process makes no more calls
		if !e.Killed {
			a = decide(Notice{Nr: int(n.nr), Nth: e.Calls, Same: same[n.nr], PID: int(n.pid), Args: n.args})
		}
		resp := notifResp{id: n.id, flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE}
		switch {
		case a.Kill:
			e.Killed = true
			if err := p.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
				return err
			}
			continue // unanswered, it dies where it waits
		case a.Errno != 0:
			resp.errno, resp.flags = -int32(a.Errno), 0
		}
		if err := ioctl(listener, unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&resp)); err != 0 && err != unix.ENOENT {
			return fmt.Errorf("answer a notification: %w", err)
		}
	}
}

func ioctl(fd int, request uintptr, arg unsafe.Pointer) syscall.Errno {
	_, _, err := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), request, uintptr(arg))
	return err
}

// receiveFD takes the one descriptor that the child sends before it executes.
func receiveFD(socket int) (int, error) {
	word, oob := make([]byte, 1), make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := unix.Recvmsg(socket, word, oob, unix.MSG_CMSG_CLOEXEC)
	if err != nil {
		return -1, err
	}
	var fds []int
	msgs, err := unix.ParseSocketControlMessage(oob[:n])
	if err == nil && len(msgs) == 1 {
		fds, err = unix.ParseUnixRights(&msgs[0])
	}
	if err != nil || len(fds) != 1 {
		return -1, errors.New("the child sent no listener")
	}
	return fds[0], nil
}
