// SPDX-License-Identifier: Apache-2.0

package runtimes

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// syslog listens at dir/log. The machine may have none, or one that need not
// know.
type syslog struct {
	dir  string
	conn *net.UnixConn
}

func listen(t *testing.T) syslog {
	t.Helper()
	s := syslog{dir: onDisk(t)}
	for _, name := range []string{"upper", "work"} {
		if err := os.Mkdir(filepath.Join(s.dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(s.dir, "upper", "log"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	var err error
	s.conn, err = net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(s.dir, "log"), Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.conn.Close() })
	return s
}

// shell puts the socket at /dev/log, where the engine runs. A socket in an
// overlay is not the one beneath it (Linux 6.18), so the overlay has a file to
// mount the socket on.
func (s syslog) shell() string {
	return fmt.Sprintf("mount -t overlay -o lowerdir=/dev,upperdir=%[1]s/upper,workdir=%[1]s/work overlay /dev; "+
		"mount --bind %[1]s/log /dev/log", s.dir)
}

// lines gives what came since it was last asked. The sender has ended: all of
// it is in the queue.
func (s syslog) lines(t *testing.T) []string {
	t.Helper()
	var lines []string
	buf := make([]byte, 4096)
	for {
		if err := s.conn.SetReadDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		n, err := s.conn.Read(buf)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return lines
		}
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, string(buf[:n]))
	}
}
