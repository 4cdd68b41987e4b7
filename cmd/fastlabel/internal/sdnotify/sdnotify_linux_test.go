// SPDX-License-Identifier: Apache-2.0

package sdnotify

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/fastlabel/fastlabel/test/treetest"
)

// A message arrives whole, at a socket with a path and at an abstract one.
func TestSend(t *testing.T) {
	for _, name := range []string{filepath.Join(t.TempDir(), "notify"), fmt.Sprintf("@fastlabel-test-%d", os.Getpid())} {
		l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
		if err != nil {
			t.Fatal(err)
		}
		s := Open(name)
		for _, c := range []struct {
			send []string
			want string
		}{
			{[]string{"READY=1"}, "READY=1"},
			{[]string{"STATUS=a\nREADY=1", "EXTEND_TIMEOUT_USEC=1"}, "STATUS=a READY=1\nEXTEND_TIMEOUT_USEC=1"},
		} {
			if err := s.Send(c.send...); err != nil {
				t.Fatal(err)
			}
			buf := make([]byte, 4096)
			n, err := l.Read(buf)
			if err != nil || string(buf[:n]) != c.want {
				t.Errorf("%s: %q, %v; not %q", name, buf[:n], err, c.want)
			}
		}
		l.Close()
		if s.Send("READY=1") == nil {
			t.Errorf("%s: nobody listens, and no error", name)
		}
	}
}

// Who does not read holds nobody up, and is told again when it reads.
func TestDeafManager(t *testing.T) {
	name := filepath.Join(t.TempDir(), "notify")
	l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	s := Open(name)
	for n := 0; ; n++ {
		var err error
		treetest.Returns(t, "a message that nobody reads", func() { err = s.Send("STATUS=x") })
		if err != nil {
			break
		}
		if n > 100_000 {
			t.Fatal("the queue has no end")
		}
	}
	if _, err := l.Read(make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	if err := s.Send("STATUS=y"); err != nil {
		t.Error(err)
	}
}

func TestOpen(t *testing.T) {
	for _, name := range []string{"", "vsock:2:1234", "relative"} {
		if s := Open(name); s != nil || s.Send("READY=1") != nil {
			t.Errorf("%q: %v", name, s)
		}
	}
}
