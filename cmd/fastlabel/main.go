// SPDX-License-Identifier: Apache-2.0

// Command fastlabel gives a directory and everything beneath it an SELinux
// label, in parallel.
//
//	Usage: fastlabel [flags] PATH...            label PATH and everything beneath it
//	       fastlabel completion SHELL           print a script for bash, zsh or fish
//	       fastlabel hook [flags]               OCI createRuntime hook; reads stdin
//	       fastlabel probe [flags] PATH...      is it labelled? reads PATH alone
//	       fastlabel restorecon [-R] PATH...    label by the policy's file contexts
//	       fastlabel verify [flags] PATH...     read every label, write none
//	       fastlabel version                    print the version
//
//	Examples:
//	  fastlabel -l s0:c35,c75 /var/lib/pv             # the volume of one pod
//	  fastlabel -n -v -l s0:c35,c75 /var/lib/pv       # what would change
//	  find /srv/* -prune -print0 | fastlabel -0 -f -  # many PATHs
//
// --help has the flags, of COMMAND too, and the exit codes.
//
// The files, in the order in which a run meets them:
//
//	main.go        run: from the arguments to an exit code; signals
//	flags.go       the table of flags, the commands that have them, and --help of these
//	label.go       fastlabel PATH, and verify, which checks it; the label that the flags ask for
//	probe.go       is it labelled?
//	restorecon.go  labels by the policy, and parts of labels
//	hook.go        the OCI hook: the sources of a container's mounts; its lines and its journal
//	version.go     the build
//	removed.go     flags and commands of the release before, and what to use instead
//	paths.go       paths from a file or a pattern, and what --exclude matches
//	lookup.go      each PATH is looked up before any is touched
//	work.go        the library is called, for one path after the other; the line that resumes
//	progress.go    how far it is
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/child"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/exit"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/report"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/site"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/stream"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/words"
	"github.com/fastlabel/fastlabel/relabel"
)

func main() {
	process(app{tree: treeOrCheck, inspect: relabel.Inspect, lstat: os.Lstat, readOnly: site.ReadOnly, off: site.Off, child: inChild})
}

func treeOrCheck(ctx context.Context, root, label string, o *relabel.Options, check bool) (relabel.Report, error) {
	if check {
		return relabel.Verify(ctx, root, label, o)
	}
	return relabel.Tree(ctx, root, label, o)
}

// inChild does the work in a child where it may hang.
func inChild(ctx context.Context, mounts site.Mounts) (code int, done bool) {
	if child.Is() || !mounts.MayHang() {
		return 0, false
	}
	return child.Run(ctx)
}

// spareProcessor gives Go's scheduler one P more than there are processors, unless
// GOMAXPROCS is set. With no idle P the scheduler retakes those in system calls, for
// threads that find no work: 7,000 context switches in half a second of two workers on
// two processors, and 900 with a third P. The engine still has one worker a processor.
func spareProcessor() {
	if n := runtime.GOMAXPROCS(0); n == runtime.NumCPU() && os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(n + 1)
	}
}

// process is the command as a process, and ends it.
func process(a app) {
	// /proc shows the first thread's working directory as the process's: no worker
	// that changes its own may run on that thread.
	runtime.LockOSThread()
	debug.SetTraceback("crash") // a crash ends by SIGABRT: Go's own code is 2, which says that nothing was begun
	spareProcessor()
	a.name, a.screen = os.Args[0], &stream.Screen{W: os.Stderr}
	leave, end := func(code int) { a.screen.Leave(); os.Exit(code) }, os.Exit
	if child.Is() {
		leave, end = func(int) {}, child.Leave // a second signal is the parent's
		child.Begin()
	}
	a.quit = end
	if !signal.Ignored(syscall.SIGTSTP) {
		stops := make(chan os.Signal, 1)
		signal.Notify(stops, syscall.SIGTSTP)
		go func() {
			for range stops {
				a.screen.Suspend()
			}
		}()
	}
	// Each wait of a locked goroutine costs two changes of threads, so another does the work.
	go func() { end(a.run(interruptible(leave), os.Stdin, os.Stdout, os.Stderr, os.Args[1:])) }()
	select {}
}

// app is the library as the command calls it; tests put others in.
type app struct {
	// tree is Tree or, with check, Verify.
	tree    func(ctx context.Context, root, label string, o *relabel.Options, check bool) (relabel.Report, error)
	inspect func(root, label string, t relabel.Skip) (relabel.RootState, error)
	// state, if not nil, is what p tells.
	state func(p *relabel.Progress) (relabel.State, bool)
	// child, if not nil, may do the work in another process.
	child func(ctx context.Context, mounts site.Mounts) (code int, done bool)
	// lstat, if not nil, looks up each PATH before any is touched.
	lstat func(path string) (fs.FileInfo, error)
	// off, if not nil, reports whether SELinux is off.
	off func() bool
	// readOnly, if not nil, tells what nothing can be written to.
	readOnly func(path string) bool

	// quit, if not nil, ends the process.
	quit func(code int)

	name   string         // what the command was called by
	screen *stream.Screen // standard error; nil: of run's own
}

// run is the command: what it reads, what it writes, its exit code.
func (a app) run(ctx context.Context, stdin io.Reader, stdout, stderr io.Writer, args []string) int {
	if a.screen == nil {
		a.screen = &stream.Screen{W: stderr}
	}
	out := stream.NewSink(stdout, a.screen)
	stderr = a.screen
	code := a.execute(ctx, stdin, out, stderr, args)
	if err := out.Flush(); err != nil {
		code = exit.Worse(code, stream.Failed(stderr, err))
	}
	return code
}

func (a app) execute(ctx context.Context, stdin io.Reader, out *stream.Sink, stderr io.Writer, args []string) (code int) {
	var s settings
	root := commandTree(&s, args, func(operands []string) error {
		switch {
		case s.version:
			out.Line([]byte(versionLine()), true)
		case s.command == "hook":
			code = a.runHook(ctx, &s, stdin, stderr)
		default:
			code = a.work(ctx, &s, stdin, out, stderr, operands)
		}
		return nil
	})
	root.SetOut(out.W)
	root.SetErr(io.Discard)
	root.SetArgs(args)
	c, _, err := root.Find(args)
	if err == nil {
		err = mistaken(c, args)
	}
	if err == nil {
		c, err = root.ExecuteC()
	}
	if err = cmp.Or(err, s.unhelped); err != nil {
		return misused(stderr, nameOf(c), err)
	}
	return code
}

// misused prints what is wrong with the command line, and returns the code for that.
func misused(stderr io.Writer, command string, err error) int {
	text := regexp.MustCompile(`strconv\.\w+: parsing ".*": |shorthand (flag: )'.' in `).ReplaceAllString(err.Error(), "$1")
	text = regexp.MustCompile(`^if any .*; \[(\S+) (\S+?)[] ].*`).ReplaceAllString(text, "--$1 and --$2 exclude each other")
	fmt.Fprintf(stderr, "fastlabel: %s; see %s --help\n", words.Clean(text), strings.TrimSpace("fastlabel "+command))
	return exit.Usage
}

// work labels, probes or verifies.
func (a app) work(ctx context.Context, s *settings, stdin io.Reader, out *stream.Sink, stderr io.Writer, operands []string) (code int) {
	if s.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, s.timeout, exit.Deadline{After: s.timeout})
		defer cancel()
	}
	defer func() { _ = out.Flush() }() // run reports its error
	mounts := site.Table()
	if a.child != nil {
		if code, done := a.child(ctx, mounts); done {
			return code
		}
	}
	if a.quit != nil {
		defer context.AfterFunc(ctx, func() {
			time.Sleep(exit.Grace)
			code, reason := exit.Of(ctx)
			stream.LastWords(reason + "; what was begun does not return")
			a.quit(code)
		})()
	}
	j := &job{app: a, settings: s, mounts: mounts, Reporter: a.newReporter(s, out, stderr)}
	if s.maxRate > 0 {
		j.limiter = limiterOf(int(s.maxRate))
	}
	if s.command != "probe" {
		j.progress = a.newProgress(s, j.Reporter)
		defer j.progress.show()()
	}
	paths, err := j.prepare(ctx, stdin, operands)
	switch {
	case err != nil && exit.IsEnd(ctx, err):
		var hung *relabel.HungError
		if errors.As(err, &hung) {
			for _, e := range report.FailuresOf(hung) {
				fmt.Fprintf(stderr, "fastlabel: %s\n", report.FaultOf("", e))
			}
		}
		var reason string
		code, reason = exit.Of(ctx)
		fmt.Fprintf(stderr, "fastlabel: not begun: %s\n", reason)
		return code
	case errors.As(err, new(exit.UsageError)):
		return misused(stderr, s.command, err)
	case err != nil:
		fmt.Fprintf(stderr, "fastlabel: %s\n", notBegun(err))
		return exit.Code(err, exit.Usage)
	case len(paths) == 0 && s.ignoreMissing:
		return exit.Done
	case len(paths) == 0:
		j.Note("", words.Brief(s.filesFrom)+": it names no path")
		return exit.Done
	case s.command == "probe":
		return j.each(ctx, paths, j.probe)
	}
	if len(paths) > 1 { // those first that name no served filesystem
		local, remote := j.mounts.Part(paths)
		paths = slices.Concat(local, remote)
	}
	code = j.each(ctx, paths, j.one)
	if len(j.left) > 0 {
		j.Note("", toResume(s)+resumption(cmp.Or(a.name, "fastlabel"), s, operands, j.left))
	}
	return code
}

// aboutPolicy says that SELinux is off: nobody then refuses a type that there is not. It is an error
// if that is a slip of a container's type.
func (j *job) aboutPolicy() error {
	if j.off == nil || !j.off() {
		return nil
	}
	j.Note("", "SELinux is off: labels are stored all the same, and count where it is on")
	fields := strings.Split(j.label, ":")
	if len(fields) < 3 {
		return nil
	}
	name, known := fields[2], types["type"]
	if near := nearest(name, known); j.typ == name && near != "" && !slices.Contains(known, name) {
		return mistake{what: "--type " + name + ": did you mean " + near + "?", hint: "if it is meant: --label " + j.label}
	}
	return nil
}

func (a app) newReporter(s *settings, out *stream.Sink, stderr io.Writer) report.Reporter {
	dry := s.dryRun || s.command == "verify"
	if s.json {
		return report.Reporter{Sink: &report.JSON{Out: out, Quiet: s.quiet, Dry: dry}}
	}
	return report.Reporter{Sink: &report.People{Out: out, Err: stderr, Quiet: s.quiet, Dry: dry}}
}

// interruptible returns a context that SIGINT, SIGTERM and SIGHUP end, with the
// signal as its cause. One that was ignored at the start, as by nohup, stays
// ignored. The first signal lets the engine stop in good order, which may
// take as long as a system call on a dead server: the second calls leave, with
// its own exit code, unless it is SIGHUP: where a session drops, both the kernel
// and the shell send it. SIGPIPE is ignored: a write to a closed pipe is then an
// error like any other, and the exit code is ours.
func interruptible(leave func(code int)) context.Context {
	signal.Ignore(syscall.SIGPIPE)
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 2)
	for _, sig := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP} {
		if !signal.Ignored(sig) {
			signal.Notify(signals, sig)
		}
	}
	go func() {
		for first := true; ; first = false {
			sig := <-signals
			if !first && sig != syscall.SIGHUP {
				leave(exit.Signal{Sig: sig}.Code())
			}
			cancel(exit.Signal{Sig: sig})
		}
	}()
	return ctx
}
