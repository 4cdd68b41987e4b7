// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"net"
	"os"
	"time"
)

// devLog is where syslog, or the journal in its place, listens.
const devLog = "/dev/log"

// journalWait is how long a run waits in all for its lines to be taken. A reader
// that is alive needs microseconds; the hook must not outlast its time for one that
// is not.
const journalWait = 200 * time.Millisecond

// Priorities: the facility daemon (3), and how grave it is (RFC 5424, 6.2.1).
const (
	asError = 3<<3 | 3
	asInfo  = 3<<3 | 6
)

// journal sends lines to the local syslog. One that is not taken is lost, and no
// other: each is tried, on a new connection after an error. All lines are on stderr
// as well. log/syslog is not used because its writes have no deadline.
type journal struct {
	path   string
	conn   net.Conn
	waited time.Duration // by all lines so far
}

func (j *journal) write(priority int, line string) {
	begin := time.Now()
	left := max(journalWait-j.waited, time.Millisecond)
	if err := j.send(fmt.Sprintf("<%d>%s fastlabel[%d]: %s\n", priority, begin.Format(time.Stamp), os.Getpid(), line), left); err != nil {
		j.close()
	}
	j.waited += time.Since(begin)
}

func (j *journal) send(text string, wait time.Duration) (err error) {
	if j.conn == nil {
		dialer := net.Dialer{Timeout: wait}
		if j.conn, err = dialer.Dial("unixgram", j.path); err != nil {
			if j.conn, err = dialer.Dial("unix", j.path); err != nil {
				return err
			}
		}
	}
	if err := j.conn.SetWriteDeadline(time.Now().Add(wait)); err != nil {
		return err
	}
	_, err = j.conn.Write([]byte(text))
	return err
}

func (j *journal) close() {
	if j.conn != nil {
		j.conn.Close()
		j.conn = nil
	}
}
