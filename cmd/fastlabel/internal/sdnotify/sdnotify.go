// SPDX-License-Identifier: Apache-2.0

// Package sdnotify tells the service manager that started this process how it is
// doing (sd_notify(3)).
//
// github.com/coreos/go-systemd was not taken for it: its writes have no deadline,
// and a manager that is busy or being executed anew must not hold up a run.
package sdnotify

import (
	"net"
	"strings"
	"time"
)

// patience is how long the manager may take to take a message. One that is alive
// needs microseconds.
const patience = 200 * time.Millisecond

// Socket is where the manager listens. A nil one listens to nothing.
type Socket struct{ path string }

// Open returns the socket that NOTIFY_SOCKET names: a path, or "@" and an abstract
// name. It is nil for "" and for what is no local socket (vsock:).
func Open(name string) *Socket {
	if !strings.HasPrefix(name, "/") && !strings.HasPrefix(name, "@") {
		return nil
	}
	return &Socket{name}
}

// Send sends assignments such as READY=1 in one message. A newline would begin
// another assignment: it becomes a blank. What does not arrive is lost; the next
// message may arrive again.
func (s *Socket) Send(assignments ...string) error {
	if s == nil {
		return nil
	}
	for i, a := range assignments {
		assignments[i] = strings.ReplaceAll(a, "\n", " ")
	}
	return Datagram(s.path, strings.Join(assignments, "\n"), patience)
}

// Datagram sends text to the local socket at path, which has so long to take it.
func Datagram(path, text string, patience time.Duration) error {
	conn, err := net.DialTimeout("unixgram", path, patience)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetWriteDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	_, err = conn.Write([]byte(text))
	return err
}
