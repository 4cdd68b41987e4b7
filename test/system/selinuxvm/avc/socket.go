// SPDX-License-Identifier: Apache-2.0

package avc

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// readlog is the group AUDIT_NLGRP_READLOG of linux/audit.h, as a bit: all
// that a daemon would be sent.
const readlog = 1 << 0

// status is the head of struct audit_status in linux/audit.h. The kernel takes
// a short one for one whose rest is zero.
type status struct {
	Mask, Enabled, Failure, PID, RateLimit, BacklogLimit, Lost, Backlog uint32
}

// socket is a member of the kernel's audience.
type socket struct {
	fd       int
	sequence uint32
}

// dial listens from now on. The kernel then drops no message for being too many
// at once: by default it keeps 64.
func dial() (*socket, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_AUDIT)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	s := &socket{fd: fd}
	err = errors.Join(
		os.NewSyscallError("setsockopt", unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 16<<20)),
		// Answers come at once. Without one the caller does not wait for ever.
		os.NewSyscallError("setsockopt", unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 10})),
		os.NewSyscallError("bind", unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: readlog})),
	)
	if err == nil {
		err = s.send(unix.AUDIT_SET, status{Mask: unix.AUDIT_STATUS_BACKLOG_LIMIT})
	}
	if err != nil {
		return nil, errors.Join(err, unix.Close(fd))
	}
	return s, nil
}

func (s *socket) close() error { return unix.Close(s.fd) }

// send sends a request, to which the kernel answers with an acknowledgement.
func (s *socket) send(kind uint16, body any) error {
	s.sequence++
	var text bytes.Buffer
	head := unix.NlMsghdr{Type: kind, Flags: unix.NLM_F_REQUEST | unix.NLM_F_ACK, Seq: s.sequence}
	head.Len = uint32(unix.SizeofNlMsghdr + binary.Size(body))
	for _, part := range []any{head, body} {
		if err := binary.Write(&text, binary.NativeEndian, part); err != nil {
			return err
		}
	}
	return os.NewSyscallError("sendto", unix.Sendto(s.fd, text.Bytes(), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}))
}

var marks atomic.Int64

// take gives the denials since the last call, and how many messages the kernel
// has lost since the machine's start. It has the kernel queue a message of its
// own, and reads until that comes: what was refused before is before it.
func (s *socket) take() (all []Denial, lost uint32, err error) {
	mark := fmt.Sprintf("fastlabel-%d-%d.", os.Getpid(), marks.Add(1))
	if err := s.send(unix.AUDIT_USER_AVC, []byte(mark+"\x00")); err != nil {
		return nil, 0, err
	}
	if err := s.send(unix.AUDIT_GET, []byte{}); err != nil {
		return nil, 0, err
	}
	for marked, answered := false, false; !marked || !answered; {
		kind, body, err := s.receive()
		if err != nil {
			return all, lost, err
		}
		switch kind {
		case unix.AUDIT_AVC:
			if d, is := parse(body); is {
				all = append(all, d)
			}
		case unix.AUDIT_USER_AVC:
			marked = marked || strings.Contains(body, mark)
		case unix.AUDIT_GET:
			var now status
			if err := binary.Read(strings.NewReader(body), binary.NativeEndian, &now); err != nil {
				return all, lost, err
			}
			lost, answered = now.Lost, true
		}
	}
	return all, lost, nil
}

// receive gives the next message. That one is too many for the socket is an
// error, ENOBUFS.
func (s *socket) receive() (kind uint16, body string, err error) {
	buf := make([]byte, 64<<10)
	n, _, err := unix.Recvfrom(s.fd, buf, 0)
	for err == unix.EINTR {
		n, _, err = unix.Recvfrom(s.fd, buf, 0)
	}
	if err != nil {
		return 0, "", os.NewSyscallError("recvfrom", err)
	}
	if n < unix.SizeofNlMsghdr {
		return 0, "", fmt.Errorf("an audit message of %d bytes", n)
	}
	// The length in the head is not that of the message: linux/audit.h.
	kind = binary.NativeEndian.Uint16(buf[4:])
	buf = buf[unix.SizeofNlMsghdr:n]
	if kind == unix.NLMSG_ERROR && len(buf) >= 4 {
		if errno := int32(binary.NativeEndian.Uint32(buf)); errno != 0 {
			return 0, "", fmt.Errorf("audit: %w", unix.Errno(-errno))
		}
	}
	return kind, string(buf), nil
}
