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

// journalWait is how long a line may take to be taken. A reader that is alive
// needs microseconds; the hook must not outlast its time for one that is not.
const journalWait = 200 * time.Millisecond

// Priorities: the facility daemon (3), and how grave it is (RFC 5424, 6.2.1).
const (
	asError = 3<<3 | 3
	asInfo  = 3<<3 | 6
)

// journal sends lines to the local syslog. Where there is none, or it does not
// take a line in time, it is silent from then on: the lines are on stderr as
// well. log/syslog is not used because its writes have no deadline.
type journal struct {
	path string
	conn net.Conn
	gone bool
}

func (j *journal) write(priority int, line string) {
	if j.gone {
		return
	}
	if j.conn == nil {
		dialer := net.Dialer{Timeout: journalWait}
		var err error
		if j.conn, err = dialer.Dial("unixgram", j.path); err != nil {
			if j.conn, err = dialer.Dial("unix", j.path); err != nil {
				j.gone = true
				return
			}
		}
	}
	text := fmt.Sprintf("<%d>%s fastlabel[%d]: %s\n", priority, time.Now().Format(time.Stamp), os.Getpid(), line)
	err := j.conn.SetWriteDeadline(time.Now().Add(journalWait))
	if err == nil {
		_, err = j.conn.Write([]byte(text))
	}
	j.gone = err != nil
}

func (j *journal) close() {
	if j.conn != nil {
		j.conn.Close()
	}
}
