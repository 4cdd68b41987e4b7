// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/syslog"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/exit"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/oci"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/report"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/wait"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/words"
	"github.com/fastlabel/fastlabel/relabel"
)

const (
	// hookTimeout is how long the hook takes at most if nothing is said of
	// it: the kubelet gives up on a container after 120 s.
	hookTimeout = 100 * time.Second
	// hookMargin is how long before the runtime's SIGKILL the hook stops, or
	// half of what the runtime gives if that is less. The engine ends half a
	// second after it is told to, and there are lines to be written.
	hookMargin = 5 * time.Second
	// stateTimeout is how long the runtime may take to write the state, and
	// its disk to give config.json: both are there when the hook starts.
	stateTimeout = 10 * time.Second
)

// hook is one run as an OCI createRuntime (or prestart) hook. By then the
// runtime has made the mounts, and their sources are labelled: what is mounted
// read-only in the container is labelled all the same.
//
//	run     state and config.json; how long it may take
//	all     each volume in its turn, whatever became of the others
//	choose  from the annotations to the volumes
type hook struct {
	app
	settings *settings
	lines    *hookLines
	bundle   string
}

// runHook is the command: its exit code is 0, or 1 and the container does not
// start.
func (a app) runHook(ctx context.Context, s *settings, stdin io.Reader, stderr io.Writer) int {
	h := &hook{app: a, settings: s, lines: &hookLines{stderr: stderr, journal: &journal{path: devLog}, verbose: s.verbose > 0}}
	return h.run(ctx, stdin)
}

func (h *hook) run(ctx context.Context, stdin io.Reader) int {
	begin := time.Now()
	config, asked, err := h.read(ctx, stdin)
	switch {
	case err != nil:
		h.lines.error("%v", err)
		return exit.Failed
	case asked == nil:
		return exit.Done
	}
	limit, patience := limits(h.settings.timeout, config.Timeout())
	ctx, cancel := context.WithDeadlineCause(ctx, begin.Add(limit), exit.Deadline{After: limit})
	defer cancel()
	late, cancel := wait.Linger(ctx, patience)
	defer cancel()
	code, err := wait.Within(late, func() (int, error) { return h.all(ctx, config, asked), nil })
	if err == nil {
		return code
	}
	soon, cancel := context.WithTimeout(context.Background(), patience/2)
	defer cancel()
	_, _ = wait.Within(soon, func() (int, error) { // stderr may not be read
		_, reason := exit.Of(ctx)
		h.lines.last("%s, and the filesystem does not answer; the next try resumes", reason)
		return 0, nil
	})
	return exit.Failed
}

// read finds out what is asked; nil is nothing.
func (h *hook) read(ctx context.Context, stdin io.Reader) (*oci.Config, *oci.Request, error) {
	limit := stateTimeout
	if h.settings.timeout > 0 {
		limit = min(limit, h.settings.timeout)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, exit.Deadline{After: limit})
	defer cancel()
	text, err := wait.Within(ctx, func() ([]byte, error) { return oci.ReadAtMost(stdin, oci.MaxState) })
	if err != nil {
		return nil, nil, fmt.Errorf("reading the state on stdin: %w", err)
	}
	state, err := oci.DecodeState(text)
	h.lines.container, h.bundle = state.ID, state.Bundle
	if err != nil {
		return nil, nil, err
	}
	if len(state.Annotations) > 0 && !oci.IsAsked(state.Annotations) {
		return nil, nil, nil
	}
	config, err := wait.Within(ctx, func() (*oci.Config, error) { return oci.ReadConfig(state.Bundle) })
	if err != nil {
		return nil, nil, err
	}
	annotations := state.Annotations
	if len(annotations) == 0 {
		annotations = config.Annotations
	}
	asked, err := oci.ReadRequest(annotations, config.Linux.MountLabel)
	return config, asked, err
}

// limits returns how long the hook may take, and how long it then waits for a
// filesystem that does not answer. flag is --timeout, runtime what the runtime
// gives; 0 is neither.
func limits(flag, runtime time.Duration) (limit, patience time.Duration) {
	limit, margin := hookTimeout, hookMargin
	if runtime > 0 {
		margin = min(margin, runtime/2)
		limit = runtime - margin
	}
	if flag > 0 && (runtime == 0 || flag < limit) {
		limit = flag
	}
	return limit, margin / 2
}

// all labels every volume.
func (h *hook) all(ctx context.Context, config *oci.Config, asked *oci.Request) int {
	defer h.lines.end()
	volumes, ok := h.choose(ctx, config.Mounts, asked)
	h.lines.all = asked.All
	for _, v := range volumes {
		h.lines.begin(strings.Join(v.destinations, ", "))
		if h.late(ctx) {
			ok = false
			continue
		}
		quiet := &settings{command: "hook", trust: asked.Skip}
		j := &job{app: h.app, settings: quiet, Reporter: report.Reporter{Sink: h.lines}, label: asked.Label}
		// Where no label can be set none is missing: the filesystem has one
		// by its mount option, or none at all. Runtimes go on there as well.
		// Nor can it be set on what is read-only.
		j.looked = map[string]looked{v.source: {readOnly: h.readOnly != nil && h.readOnly(v.source)}}
		if code := j.one(ctx, v.source); code != exit.Done && !h.lines.spared {
			ok = false
		}
	}
	if !ok {
		return exit.Failed
	}
	return exit.Done
}

// late says that nothing is begun any more, if ctx has ended.
func (h *hook) late(ctx context.Context) bool {
	if ctx.Err() == nil {
		return false
	}
	_, reason := exit.Of(ctx)
	h.lines.error("not begun (%s)", reason)
	return true
}

// volume is a source, and where the container has it.
type volume struct {
	source       string // as mount(2) would find it: links are resolved
	destinations []string
}

// choose finds the volumes; it is not ok if one that is asked for is not among
// them, or ctx ends before, which is then told.
func (h *hook) choose(ctx context.Context, mounts []oci.Mount, asked *oci.Request) (volumes []volume, ok bool) {
	ok = true
	host := oci.TheHost()
	index := map[string]int{} // of volumes, by source
	destinations, found := asked.Destinations, map[string][]oci.Mount{}
	for _, m := range mounts {
		place := m.Place()
		if asked.All && !m.IsBind() {
			continue
		}
		if asked.All && found[place] == nil {
			destinations = append(destinations, place)
		}
		found[place] = append(found[place], m)
	}
	for _, d := range destinations {
		if ctx.Err() != nil {
			h.lines.begin("")
			return nil, !h.late(ctx)
		}
		h.lines.begin(d)
		missing := "no mount of this container"
		for _, m := range found[d] {
			if !m.IsBind() {
				if missing != "" {
					missing = "no bind mount but " + words.Plain(m.Type)
				}
				continue
			}
			missing = ""
			source, err := h.resolve(m)
			if err != nil {
				h.lines.error("%v", err)
				ok = false
				continue
			}
			if why := host.NoVolume(m, source); why != "" && asked.All {
				if why != oci.NeverWhole {
					why += "; " + oci.AskRelabel + " can list it"
				}
				h.lines.info("skipped: %s is %s", words.Plain(source), why)
				continue
			}
			i, known := index[source]
			if !known {
				i = len(volumes)
				index[source], volumes = i, append(volumes, volume{source: source})
			}
			volumes[i].destinations = append(volumes[i].destinations, d)
		}
		if missing != "" {
			h.lines.error("%s", missing)
			ok = false
		}
	}
	return volumes, ok
}

// resolve returns the mount's source.
func (h *hook) resolve(m oci.Mount) (string, error) {
	if m.Source == "" {
		return "", errors.New("the mount has no source")
	}
	source := m.Source
	if !filepath.IsAbs(source) {
		source = filepath.Join(h.bundle, source)
	}
	resolved, err := filepath.EvalSymlinks(source)
	if err != nil {
		return "", fmt.Errorf("source %s: %w", words.Plain(source), err)
	}
	return resolved, nil
}

const hookHelp = `The sources of bind mounts get linux.mountLabel of the bundle's config.json,
if the container's annotations ask for it:
  io.fastlabel.relabel  true: every volume; or destinations: /data,/logs
  io.fastlabel.shared   true: level s0, for volumes that pods share
  io.fastlabel.skip     none, root (default) or top, as --skip
  io.fastlabel.label    a label in place of linux.mountLabel
A volume is a writable directory that is bind-mounted, but nothing in /dev,
/etc, /proc, /run, /sys or /usr, and nothing that the kubelet writes. System
directories are skipped; a list that names one refuses the container.
try-skip-volume-selinux-label.crio.io=true is understood as skip top.

Without --timeout it stops after 100 s, or 5 s (half, if that is less) before
the timeout of its own entry in config.json. The next try resumes.
Errors go to stderr and to the journal.

Exit codes: 0 done, or nothing to do; 1 something failed; 2 usage.
`

func hookCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "hook [flags]",
		Short:   "OCI createRuntime hook; reads stdin",
		Long:    hookHelp,
		Example: "  fastlabel hook <state.json\n",
		Args: func(_ *cobra.Command, operands []string) error {
			if len(operands) > 0 {
				return errors.New("hook takes no PATH: its state is on stdin")
			}
			return nil
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
}

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
	priority, most := syslog.LOG_ERR, maxLines-1 // one is for the last
	if e.Kind != report.Failure && (e.Result == nil || e.Result.Code == exit.Done) {
		priority, most = syslog.LOG_INFO, maxInfos
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

// devLog is the socket of syslog, or of the journal in its place.
const devLog = "/dev/log"

// journalWait limits the time that a run waits for a line to be taken. A reader
// that is alive needs microseconds; the hook must not outlast its time for one that
// is not.
const journalWait = 200 * time.Millisecond

// journal sends lines to the local syslog; all of them are on stderr as well. After one that
// is not taken in time no other is sent.
type journal struct {
	path string
	dead bool
}

func (j *journal) write(priority syslog.Priority, line string) {
	if j.dead {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), journalWait)
	defer cancel()
	_, _ = wait.Within(ctx, func() (int, error) {
		w, err := syslog.Dial("unixgram", j.path, syslog.LOG_DAEMON|priority, "fastlabel")
		if err != nil {
			return 0, err
		}
		defer w.Close()
		return fmt.Fprintln(w, line)
	})
	j.dead = ctx.Err() != nil
}
