// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/apart"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/exit"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/report"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/site"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/stream"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/words"
	"github.com/fastlabel/fastlabel/relabel"
)

// Under systemd the manager is told how far the run is, and its timeout is extended while
// the run makes progress; lines on standard error have a priority if that is the journal
// (sd_notify(3), sd-daemon(3), systemd.exec(5)).

// stretch is how long after its last sign of life a run is still given, which is
// what systemd gives any service to start (DefaultTimeoutStartSec=).
const stretch = 90 * time.Second

// manager is told of the runs that are under way.
type manager struct {
	tell func(assignments ...string) error // nil: there is none
	last map[*underWay]relabel.State
	told time.Time
}

// see tells the manager at most once a second. The timeout is extended only where a run
// has made progress since, or waits for the disk: not for one that hangs.
func (m *manager) see(p *progress, now time.Time) {
	if m.tell == nil || now.Sub(m.told) < each-redraw/2 { // a tick may come a little early
		return
	}
	m.told = now
	runs := p.runs()
	if len(runs) == 0 {
		return
	}
	moved := false
	seen := map[*underWay]relabel.State{}
	var f report.Far
	for _, u := range runs {
		f = p.far(u, now)
		moved = moved || f.State != m.last[u] || f.Call == "syncfs"
		seen[u] = f.State
	}
	m.last = seen
	status := []string{"STATUS=" + words.Plain(shortened(f.Root)) + ": " + f.Line(words.Widest)}
	if moved {
		status = append(status, fmt.Sprintf("EXTEND_TIMEOUT_USEC=%d", stretch.Microseconds()))
	}
	_ = m.tell(status...) // a manager that does not listen is none
}

// ready tells the manager that all is done: a unit of Type=notify has then started. Only
// the process that the manager executed says so; a script may run further commands.
func (a app) ready(code int) {
	if a.notify != nil && code == exit.Done && os.Getenv("SYSTEMD_EXEC_PID") == strconv.Itoa(os.Getpid()) {
		_ = a.notify("READY=1")
	}
}

// isJournal tells whether w is the stream that systemd connected to the journal.
func isJournal(w io.Writer) bool {
	if s, ok := w.(*stream.Screen); ok {
		w = s.W
	}
	f, ok := w.(*os.File)
	name := os.Getenv("JOURNAL_STREAM")
	if !ok || name == "" {
		return false
	}
	stat := f.Stat
	if apart.IsPart() { // passes it on to its parent
		stat = func() (os.FileInfo, error) { return os.Stat(fmt.Sprintf("/proc/%d/fd/2", os.Getppid())) }
	}
	info, err := stat()
	if err != nil {
		return false
	}
	id, ok := site.Identify(info)
	return ok && name == fmt.Sprintf("%d:%d", id.Dev, id.Ino)
}
