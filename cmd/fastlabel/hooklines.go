// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/exit"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/report"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/words"
	"github.com/fastlabel/fastlabel/relabel"
)

// What a pod's author writes, and what is in a volume, must flood no log.
const (
	maxLines = 50          // a run
	maxInfos = 40          // of them; the others are for errors
	maxLine  = 8<<10 - 100 // bytes; with syslog's and our own name before it 8 KiB
)

// hookLines is the hook's reporter: each line names the container and the
// destination, and goes to stderr and to the journal, since not every runtime
// shows what a hook prints. The worker writes it and, where the worker hangs,
// the hook itself: mu makes that serial, over ends it.
type hookLines struct {
	stderr    io.Writer
	journal   *journal
	verbose   bool
	all       bool   // every volume is asked for, and so none by name
	container string // "" before it is known

	mu             sync.Mutex
	over           bool
	lines, left    int    // written, and left out
	destination    string // what is worked on
	failed, passed int    // failures told and entries skipped beneath it
	spared         bool   // no label can be set there, or with all may be
}

// begin makes destination what the lines are about; "" is the container.
func (l *hookLines) begin(destination string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.destination, l.failed, l.passed, l.spared = destination, 0, 0, false
}

func (l *hookLines) error(format string, a ...any) { l.say(asError, false, format, a...) }
func (l *hookLines) info(format string, a ...any)  { l.say(asInfo, false, format, a...) }

// end says how many lines were left out, if any were.
func (l *hookLines) end() {
	if l.begin(""); l.left > 0 {
		l.say(asError, true, "%s more lines are left out", words.Thousands(int64(l.left)))
	}
}

// last says one line more, and no other after it.
func (l *hookLines) last(format string, a ...any) { l.say(asError, true, format, a...) }

func (l *hookLines) say(priority int, last bool, format string, a ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	most := maxLines - 1 // one is for the last
	if priority == asInfo {
		most = maxInfos
	}
	switch {
	case l.over:
		return
	case l.lines >= most && !last:
		l.left++
		return
	}
	l.over = last
	l.lines++
	about := "hook: "
	if l.container != "" {
		about = "container " + words.Plain(l.container) + ": "
	}
	if l.destination != "" {
		about += words.Plain(l.destination) + ": "
	}
	line := words.Cut(about+words.Clean(fmt.Sprintf(format, a...)), maxLine)
	fmt.Fprintf(l.stderr, "fastlabel: %s\n", line)
	l.journal.write(priority, line)
}

func (l *hookLines) Failure(root string, err error) {
	if l.all && errors.Is(err, relabel.ErrRefused) {
		l.spared = true
		l.info("left alone: %s", report.FaultOf(root, err))
		return
	}
	if !errors.Is(err, report.ErrHangs) {
		if l.failed++; l.failed > report.MaxListed {
			return
		}
	}
	l.spared = errors.Is(err, errors.ErrUnsupported)
	l.error("%s", report.FaultOf(root, err))
}

func (l *hookLines) Skip(_, path, reason string) {
	if l.passed++; l.passed <= report.MaxListed {
		l.info("%s: skipped: %s", words.Quote(path), reason)
	}
}

func (l *hookLines) Wait(_, holder string) {
	l.info("waiting for another relabel of this volume (%s)", holder)
}

func (l *hookLines) Stall(_ string, c relabel.HungCall) { l.info("waiting for %v", c) }

func (l *hookLines) Note(_, text string)      { l.info("%s", text) }
func (l *hookLines) Change(_, _, _, _ string) {}
func (l *hookLines) Probed(report.Probe)      {}

func (l *hookLines) Result(r report.Result) {
	if l.failed > report.MaxListed {
		l.error("%s more failures", words.Thousands(int64(l.failed-report.MaxListed)))
	}
	if l.passed > report.MaxListed {
		l.info("%s more skipped", words.Thousands(int64(l.passed-report.MaxListed)))
	}
	l.spared = (l.spared || r.Reason == "read-only") && r.Code == exit.Refused
	line := report.ResultLine(r)
	switch {
	case r.Code == exit.Done && l.verbose:
		l.info("%s", line)
	case r.Code == exit.Done:
	case l.spared && r.Reason != "refused":
		l.info("left alone: no label can be set there")
	case r.Begun && r.Code >= exit.TimedOut:
		l.error("%s; the next try resumes", line)
	case line != "":
		l.error("%s", line)
	}
}
