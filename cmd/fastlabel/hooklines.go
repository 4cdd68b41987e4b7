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

// hookLines is the hook's sink: each line names the container and the destination, and
// goes to stderr for people and to the journal as JSON, since not every runtime
// shows what a hook prints. The worker writes it and, where the worker hangs,
// the hook itself: mu makes that serial, over ends it.
type hookLines struct {
	stderr    io.Writer
	journal   *journal
	verbose   bool
	all       bool   // every volume is asked for, and so none by name
	container string // "" before it is known

	mu          sync.Mutex
	over        bool
	lines, left int    // written, and left out
	destination string // what is worked on
	spared      bool   // no label can be set there, or with all may be
}

// begin makes destination what the lines are about; "" is the container.
func (l *hookLines) begin(destination string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.destination, l.spared = destination, false
}

func (l *hookLines) error(format string, a ...any) {
	l.say(report.Event{Kind: report.Failure, Err: fmt.Errorf(format, a...)}, "", false)
}

func (l *hookLines) info(format string, a ...any) {
	l.say(report.Event{Kind: report.Note, Text: fmt.Sprintf(format, a...)}, "", false)
}

// end says how many lines were left out, if any were.
func (l *hookLines) end() {
	if l.begin(""); l.left > 0 {
		l.last("%s more lines are left out", words.Thousands(int64(l.left)))
	}
}

// last says one line more, and no other after it.
func (l *hookLines) last(format string, a ...any) {
	l.say(report.Event{Kind: report.Failure, Err: fmt.Errorf(format, a...)}, "", true)
}

func (l *hookLines) say(e report.Event, more string, last bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	priority, most := asError, maxLines-1 // one is for the last
	if e.Kind != report.Failure && (e.Result == nil || e.Result.Code == exit.Done) {
		priority, most = asInfo, maxInfos
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
	line := words.Cut(about+e.Line(false)+more, maxLine)
	fmt.Fprintf(l.stderr, "fastlabel: %s\n", line)
	object := report.Object(e, false, "container", l.container, "destination", l.destination)
	if len(object) > maxLine { // of a line, a backslash takes two bytes more at most
		object = report.Object(report.Event{Kind: report.Note, Text: words.Cut(line, maxLine/2-100)}, false)
	}
	l.journal.write(priority, string(object))
}

func (l *hookLines) Put(e report.Event) {
	r := e.Result
	switch {
	case e.Kind == report.Failure && l.all && errors.Is(e.Err, relabel.ErrRefused):
		l.spared = true
		l.info("skipped: %s", e.Line(false))
	case e.Kind == report.Failure:
		l.spared = errors.Is(e.Err, errors.ErrUnsupported)
		l.say(e, "", false)
	case r == nil:
		l.say(e, "", false)
	default:
		l.spared = (l.spared || r.Reason == "read-only") && r.Code == exit.Refused
		switch {
		case r.Code == exit.Done && !l.verbose:
		case l.spared && r.Reason != "refused":
			l.info("skipped: no label can be set there")
		case e.Line(false) == "":
		case r.Code >= exit.TimedOut:
			l.say(e, "; the next try resumes", false)
		default:
			l.say(e, "", false)
		}
	}
}
