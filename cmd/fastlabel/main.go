// SPDX-License-Identifier: Apache-2.0

// Command fastlabel gives a directory and everything beneath it an SELinux
// label, in parallel.
//
//	Usage: fastlabel [flags] PATH...            label PATH and everything beneath it
//	       fastlabel probe [flags] PATH...      is it labelled? reads PATH alone
//	       fastlabel verify [flags] PATH...     read every label, write none
//	       fastlabel restore [flags] FILE       put back what --record kept
//	       fastlabel explain [flags] PATH...    what runtimes do there, and why
//	       fastlabel hook [flags]               OCI createRuntime hook; reads stdin
//	       fastlabel version                    print the version
//	       fastlabel completion bash|zsh|fish   print a script for that shell
//
//	Label, by default system_u:object_r:container_file_t:s0:
//	      --label CONTEXT         the whole label
//	  -t, --type TYPE             another type in the default
//	  -l, --level LEVEL           another level, such as s0:c1,c2
//	  -u, --user USER             another user
//	      --role ROLE             another role
//	      --reference FILE        the label of FILE, or of what it links to
//
//	Paths:
//	  -x, --one-file-system       leave alone what is mounted below PATH
//	  -e, --exclude DIR           leave DIR alone; may be repeated
//	  -f, --files-from FILE       more PATHs, one a line; - is stdin
//	  -0, --null                  PATHs in FILE end in NUL
//	      --hard-links HOW        if hard-linked: label (default), skip or error
//
//	How:
//	  -n, --dry-run               write nothing, say what would be
//	  -T, --threads N             workers, up to 1024; 0 chooses (default)
//	      --skip HOW              pass over: none (default), root, top, unchanged
//	      --exact                 read every label before writing it
//	      --record FILE           keep the labels before, for restore, in a new FILE
//	      --timeout DURATION      stop then, such as 90s; 0 never (default)
//	      --no-seal               do not mark PATH while work is under way
//	      --no-sync               do not wait for the disk at the end
//	      --max-rate N            at most N entries a second; 0 any (default)
//	      --max-pressure P        slow down while I/O pressure is above P per cent
//	      --nice                  lowest priority for processor and disk
//
//	Output:
//	  -p, --progress              tell how far it is; by itself on a terminal
//	  -v, --verbose               list each change on stdout, and every failure
//	  -q, --quiet                 no result lines, no progress
//	      --json                  JSON lines on stdout, one object each
//	      --metrics FILE          what became of each PATH, for node_exporter
//	      --log-level LEVEL       log to stderr: debug, info, warn, error
//	      --log-format FORMAT     console (default) or json
//	  -h, --help                  this text
//	  -V, --version               print the version
//
//	--skip root passes over a PATH that bears the label; top asks its entries too.
//	--skip unchanged looks only where something was created, renamed or moved in
//	since the last run to this label; labels changed in place it does not find.
//
//	Of failures, the first 20 a PATH are listed, all with -v and in JSON.
//	Where one failed, PATH itself is left without the label, and counts as skipped.
//	In JSON, a path that is not UTF-8 has its exact bytes in path_base64.
//	On SIGUSR1 it says how far it is.
//
//	Exit codes:
//	  0  done, or nothing to do       4    differences found, changed meanwhile
//	  1  some entries failed          124  --timeout reached
//	  2  usage; nothing was begun     130  interrupted (143: SIGTERM, SIGHUP)
//	  3  refused, or no labels there
//	The worst of all PATHs counts: 130 and 143, 124, 2, 1, 3, 4, 0.
//
//	All PATHs are looked up before any is touched. Put -- before a PATH that is
//	named like a command. fastlabel label PATH is the same as fastlabel PATH, and
//	help COMMAND as COMMAND --help. -R and -r are taken, without effect.
//
//	Example: fastlabel -l s0:c35,c75 /var/lib/pv
//
// The files, in the order in which a run meets them:
//
//	main.go        run: from the arguments to an exit code
//	signals.go     SIGINT, SIGTERM and SIGHUP end the context
//	crash_*.go     a crash is a failure
//	flags.go       the table of flags; the command among the arguments
//	values.go      what a flag's value may be
//	help.go        the commands, and --help from the table
//	completion.go  scripts for shells, from the table
//	manual.go      manual pages, from the table, by internal/man
//	version.go     the build
//	label.go       the label that the flags ask for
//	files.go       paths from a file
//	manners.go     --nice, --max-rate, --max-pressure
//	turns.go       one path after the other, and past one that stalls
//	lookup.go      each PATH is looked up before any is touched
//	near.go        which word was meant
//	undo.go        --record and restore; internal/undo is their file
//	work.go        the library is called, for each path
//	probe.go       the same for probe
//	explain.go     what is to be said of a path
//	explainpods.go the label that pods ask for
//	teller.go      what the library tells of one path, each thing once
//	hook.go        the OCI hook: the sources of a container's mounts
//	hookvolume.go  which mounts are volumes, where all are asked for
//	hookstate.go   the state on stdin, and config.json in its bundle
//	hookask.go     what the container's annotations ask
//	hooklines.go   lines for whoever looks for a container's failure
//	journal.go     the same for syslog
//	progress.go    how far it is, for whoever waits
//	estimate.go    how fast, and how long the rest takes at that rate
//	goon.go        the command line that goes on after a stop
//	service.go     what systemd's manager and journal are told, by internal/sdnotify
//	account.go     what became of each path, for internal/metrics and the journal
//	output.go      lines for people
//	json.go        lines for programs
//	explaintext.go, explainjson.go: the same for explain
//	faults.go      an error taken apart; calls that hang
//	log.go         lines for the log
//	errno_*.go     names of errors
//
// Packages that several of these use, and those for explain:
//
//	internal/words     names, numbers and times in a line for people
//	internal/exit      exit codes, and which is worse
//	internal/wait      waiting for what may hang
//	internal/apart     a child does what may hang, and can be left behind
//	internal/stream    standard output, and standard error with the line drawn again
//	internal/pace      so many entries a second, I/O pressure, priorities
//	internal/site      what is at a PATH: file, label, mount; which PATH lies in which
//	internal/workload  what pods ask for
//	internal/outlook   what runtimes do and why, and what to write
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"

	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/apart"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/exit"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/pace"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/sdnotify"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/site"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/stream"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/words"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/workload"
	"github.com/fastlabel/fastlabel/relabel"
)

func main() {
	process(app{tree: relabel.Tree, labelled: relabel.Labelled, sealed: relabel.Interrupted, commit: relabel.LastCommit, lstat: os.Lstat, label: site.LabelOf, readOnly: site.ReadOnly, apart: whatMayHang, giveWay: pace.GiveWay})
}

// whatMayHang is done apart.
func whatMayHang(ctx context.Context) (code int, done, told bool) {
	if apart.IsPart() || !site.MayHang() {
		return 0, false, false
	}
	return apart.Run(ctx)
}

// spareProcessor lets Go's scheduler have one processor more than there are,
// unless somebody chose. While all of its processors are in use it takes them
// from those who are in system calls, for threads that find nothing to do: 7,000
// context switches in half a second of two workers on two processors, and 900
// when a third is idle. The engine still has one worker a processor.
func spareProcessor() {
	if n := runtime.GOMAXPROCS(0); n == runtime.NumCPU() && os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(n + 1)
	}
}

// process is the command as a process, and ends it.
func process(a app) {
	// The first thread's working directory is what others see as the
	// process's: no worker that changes its own shall run on it.
	runtime.LockOSThread()
	crashAsFailure()
	spareProcessor()
	asked := make(chan os.Signal, 1)
	if !apart.IsPart() {
		apart.NotifyAsked(asked)
	}
	a.name, a.asked, a.screen = os.Args[0], asked, &stream.Screen{W: os.Stderr, OfParent: apart.IsPart()}
	if s := sdnotify.Open(os.Getenv("NOTIFY_SOCKET")); s != nil {
		a.notify = s.Send
	}
	leave, end := func(code int) { a.screen.Leave(); os.Exit(code) }, os.Exit
	if apart.IsPart() {
		leave, end = func(int) {}, apart.Leave // a second signal is the parent's
		apart.Begin(asked)
	}
	a.quit = end
	ctx, _ := interruptible(leave)
	end(a.run(ctx, os.Stdin, os.Stdout, os.Stderr, os.Args[1:]))
}

// app is the library as the command calls it; tests put others in.
type app struct {
	tree     func(ctx context.Context, root, label string, o relabel.Options) (relabel.Report, error)
	labelled func(root, label string, depth relabel.Depth) (bool, error)
	// sealed tells whether root bears the seal of an interrupted relabel to
	// label.
	sealed func(root, label string) (bool, error)
	// apart, if not nil, may do the work in another process. Where that was cut
	// off, not all was told that there is to be told.
	apart func(ctx context.Context) (code int, done, told bool)
	// lstat, if not nil, looks up each PATH before any is touched.
	lstat func(path string) (fs.FileInfo, error)
	// label, if not nil, returns the label that a file has, "" if none.
	label func(path string) (string, error)
	// readOnly, if not nil, tells what nothing can be written to.
	readOnly func(path string) bool
	// commit tells what the last run left on root.
	commit func(root string) (relabel.Commit, error)
	// giveWay, if not nil, makes the process one that gives way to others.
	giveWay func() error

	// notify, if not nil, tells the service manager.
	notify func(assignments ...string) error

	// quit, if not nil, ends the process. ends is called when all is written.
	quit func(code int)
	ends *[]func()

	name   string           // what the command was called by
	asked  <-chan os.Signal // by who wants to know how far it is
	screen *stream.Screen   // standard error; nil: of run's own
}

// run is the command: what it reads, what it writes, its exit code.
func (a app) run(ctx context.Context, stdin io.Reader, stdout, stderr io.Writer, args []string) int {
	out := stream.NewSink(stdout)
	out.Live = out.Live || apart.IsPart()
	if a.screen == nil {
		a.screen = &stream.Screen{W: stderr}
	}
	if stream.IsTerminal(stdout) || apart.IsPart() { // perhaps the same
		out.W.Reset(a.screen.Beside(stdout))
	}
	stderr = a.screen
	a.ends = new([]func())
	defer func() {
		for _, end := range *a.ends {
			end()
		}
	}()
	code := a.command(ctx, stdin, out, stderr, args)
	if err := out.Flush(); err != nil {
		code = exit.Worse(code, stream.Failed(stderr, err))
	}
	return code
}

// giveUp ends the process without a word: nobody reads. Metrics are a file.
func (a app) giveUp(ctx context.Context, kept *account, operands []string) {
	code, _ := exit.Of(ctx)
	if kept.file != "" {
		code = kept.write(ctx, io.Discard, code, operands)
	}
	a.quit(code)
}

func (a app) command(ctx context.Context, stdin io.Reader, out *stream.Sink, stderr io.Writer, args []string) (code int) {
	c, args, err := dispatch(args)
	var s *settings
	var operands []string
	if err == nil {
		s, operands, err = parse(c, args)
	}
	usage := func(err error) int {
		fmt.Fprintf(stderr, "fastlabel: %v; see %s --help\n", err, c.call())
		return exit.Usage
	}
	switch {
	case err != nil:
		return usage(err)
	case s.version:
		out.Line([]byte(versionLine()), true)
		return exit.Done
	case s.help:
		fmt.Fprint(out.W, c.help())
		return exit.Done
	case s.man != "":
		if err := manual(s.man); err != nil {
			fmt.Fprintf(stderr, "fastlabel: --man: %s\n", words.Clean(err.Error()))
			return exit.Failed
		}
		return exit.Done
	case c.name == "version":
		if len(operands) > 0 {
			return usage(errors.New("version takes no PATH"))
		}
		out.Line([]byte(versionLine()), true)
		return exit.Done
	case c.name == "completion":
		if len(operands) != 1 || completion(operands[0]) == "" {
			return usage(errors.New("completion takes one of bash, zsh, fish"))
		}
		fmt.Fprint(out.W, completion(operands[0]))
		return exit.Done
	case c.name == "hook":
		if len(operands) > 0 {
			return usage(errors.New("hook takes no PATH: its state is on stdin"))
		}
		return a.runHook(ctx, s, stdin, stderr)
	}
	if s.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, s.timeout, exit.Deadline{After: s.timeout})
		*a.ends = append(*a.ends, cancel)
	}
	kept := newAccount(c, s, stderr)
	if a.quit != nil {
		*a.ends = append(*a.ends, stream.Unread(ctx, func() { a.giveUp(ctx, kept, operands) }, &out.Outlet, &a.screen.Outlet))
	}
	told := false
	defer func() {
		if !told {
			code = kept.close(ctx, stderr, code, operands)
		}
		if !apart.IsPart() {
			a.ready(code)
		}
	}()

	pace, press, err := a.manners(s)
	if err != nil {
		fmt.Fprintf(stderr, "fastlabel: %v\n", err)
		return exit.Refused
	}
	if a.apart != nil {
		var done bool
		if code, done, told = a.apart(ctx); done {
			return code
		}
	}
	if press != nil {
		defer press.Watch(pace)()
	}
	j := &job{app: a, settings: s, command: c.name, reporter: kept.beside(newReporter(c, s, out, stderr)), account: kept, pacer: pace}
	if c.name != "probe" && c.name != "explain" {
		j.progress = a.newProgress(c.name, s, out)
		defer j.progress.show(a.asked)()
	}
	paths, err := j.prepare(ctx, stdin, operands)
	var pods workload.Pods
	if err == nil {
		pods, err = podsIn(ctx, s, stdin)
	}
	switch {
	case err != nil && exit.IsEnd(ctx, err):
		var hung *relabel.Hung
		if errors.As(err, &hung) {
			for _, e := range failuresOf(hung) {
				sayFailure(stderr, e)
			}
		}
		var reason string
		code, reason = exit.Of(ctx)
		fmt.Fprintf(stderr, "fastlabel: not begun: %s\n", reason)
		return code
	case errors.As(err, new(exit.UsageError)):
		return usage(err)
	case err != nil:
		level := ""
		if isJournal(stderr) {
			level = levelError
		}
		fmt.Fprintf(stderr, "%sfastlabel: %s\n", level, notBegun(err))
		return exit.Code(err, exit.Usage)
	case len(paths) == 0:
		j.note("", "nothing to do: "+words.Brief(s.filesFrom)+" names no path")
		return exit.Done
	case c.name == "probe":
		return j.probeAll(ctx, paths)
	case c.name == "explain":
		return j.explainAll(ctx, pods, paths)
	}
	code = exit.Worse(j.labelAll(ctx, paths), j.recorded(ctx))
	if len(j.left) > 0 && c.name == "restore" {
		j.left = operands
	}
	if len(j.left) > 0 {
		j.note("", toGoOn(s)+goOn(cmp.Or(a.name, "fastlabel"), c, args, operands, j.left))
	}
	return code
}

func newReporter(c command, s *settings, out *stream.Sink, stderr io.Writer) reporter {
	dry := s.dryRun || c.name == "verify"
	var r reporter = &people{out: out, err: stderr, verbose: s.verbose, quiet: s.quiet, dry: dry, journal: isJournal(stderr), user: os.Geteuid() != 0 && c.name != "probe"}
	if s.json {
		r = &jsonLines{out: out, verbose: s.verbose, dry: dry}
	}
	if s.logLevel != "" {
		r = logged{r, newLogger(stderr, s)}
	}
	return r
}
