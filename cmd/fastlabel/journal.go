// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"net"
	"os"
	"time"
)

// devLog is the socket of syslog, or of the journal in its place.
const devLog = "/dev/log"

// journalWait limits the time that a run waits in all for its lines to be taken. A reader
// that is alive needs microseconds; the hook must not outlast its time for one that
// is not.
const journalWait = 200 * time.Millisecond

// Priorities: the facility daemon (3), and how grave it is (RFC 5424, 6.2.1).
const (
	asError = 3<<3 | 3
	asInfo  = 3<<3 | 6
)

// journal sends lines to the local syslog. One that is not taken is lost, and no
// other: each has a connection of its own. All lines are on stderr as well. log/syslog
// is not used because its writes have no deadline.
type journal struct {
	path   string
	waited time.Duration // by all lines so far
}

func (j *journal) write(priority int, line string) {
	begin := time.Now()
	defer func() { j.waited += time.Since(begin) }()
	end := begin.Add(max(journalWait-j.waited, time.Millisecond))
	conn, err := (&net.Dialer{Deadline: end}).Dial("unixgram", j.path)
	if err != nil {
		return
	}
	defer conn.Close()
	if conn.SetWriteDeadline(end) == nil {
		fmt.Fprintf(conn, "<%d>%s fastlabel[%d]: %s\n", priority, begin.Format(time.Stamp), os.Getpid(), line)
	}
}
