// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/pflag"

	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/words"
)

// settings are the flags, parsed.
type settings struct {
	label, user, role, typ, level, reference string
	forPods                                  string // --for

	xdev      bool
	exclude   []string
	filesFrom string
	null      bool

	dryRun           bool
	threads          int
	trust, hardLinks string // trust is --skip
	exact            bool
	timeout          time.Duration
	noSeal, noSync   bool
	depth            string

	record, root string // FILE of --record; --root
	partial      bool

	maxRate     int     // entries a second; 0: no limit
	maxPressure float64 // per cent; 0: no limit
	nice        bool

	verbose, quiet, json, help bool
	version                    bool
	literal                    int  // of the operands, how many stand behind --
	named                      bool // the command was named, so no operand was meant as one
	progress                   bool
	metrics, man               string
	logLevel, logFormat        string
}

// option is one flag: the source of the flag sets, the help and the completion.
type option struct {
	group, long, short string
	arg                string // what the help calls its value; "" for a switch
	help               string // one line; "" hides it
	in                 string // the commands that have it: l(abel) p(robe) v(erify) r(estore) e(xplain) h(ook) o(ther)
	offer              string // values to complete: words, or "file", "dir" or "type"
	value              value
}

// Groups of the help, in order.
const (
	ofLabel  = "Label, by default " + defaultLabel
	ofTree   = "Paths"
	ofWork   = "How"
	ofOutput = "Output"
)

// everyCommand is the letters of all commands but hook.
const everyCommand = "lpvreo"

func options(s *settings) []option {
	return []option{
		{ofLabel, "label", "", "CONTEXT", "the whole label", "lpve", "", text(&s.label)},
		{ofLabel, "type", "t", "TYPE", "another type in the default", "lpve", "type", text(&s.typ)},
		{ofLabel, "level", "l", "LEVEL", "another level, such as s0:c1,c2", "lpve", "", text(&s.level)},
		{ofLabel, "user", "u", "USER", "another user", "lpve", "", text(&s.user)},
		{ofLabel, "role", "", "ROLE", "another role", "lpve", "", text(&s.role)},
		{ofLabel, "reference", "", "FILE", "the label of FILE, or of what it links to", "lpve", "file", text(&s.reference)},
		{ofLabel, "for", "", "FILE", "the label that the pods in FILE get; - is stdin", "e", "file", text(&s.forPods)},

		{ofTree, "one-file-system", "x", "", "leave alone what is mounted below PATH", "lv", "", boolean(&s.xdev)},
		{ofTree, "exclude", "e", "DIR", "leave DIR alone; may be repeated", "lv", "dir", list(&s.exclude)},
		{ofTree, "files-from", "f", "FILE", "more PATHs, one a line; - is stdin", "lpve", "file", text(&s.filesFrom)},
		{ofTree, "null", "0", "", "PATHs in FILE end in NUL", "lpve", "", boolean(&s.null)},
		{ofTree, "hard-links", "", "HOW", "if hard-linked: label (default), skip or error", "lv", "label skip error", enum(&s.hardLinks, "label", "skip", "error")},
		{ofTree, "root", "", "PATH", "where the tree is, if it was moved", "r", "dir", text(&s.root)},

		{ofWork, "dry-run", "n", "", "write nothing, say what would be", "lr", "", boolean(&s.dryRun)},
		{ofWork, "threads", "T", "N", fmt.Sprintf("workers, up to %d; 0 chooses (default)", maxThreads), "lvr", "", threads(&s.threads)},
		{ofWork, "skip", "", "HOW", "pass over: none (default), root, top, unchanged", "l", "none root top unchanged", skipping(&s.trust)},
		{ofWork, "exact", "", "", "read every label before writing it", "l", "", boolean(&s.exact)},
		{ofWork, "record", "", "FILE", "keep the labels before, for restore, in a new FILE", "l", "file", text(&s.record)},
		{ofWork, "partial", "", "", "put back what a record without an end holds", "r", "", boolean(&s.partial)},
		{ofWork, "timeout", "", "DURATION", "stop then, such as 90s; 0 never (default)", "lvre", "", duration(&s.timeout)},
		{ofWork, "timeout", "", "DURATION", "stop then, such as 90s; 0 chooses (default)", "h", "", duration(&s.timeout)},
		{ofWork, "no-seal", "", "", "do not mark PATH while work is under way", "lr", "", boolean(&s.noSeal)},
		{ofWork, "no-sync", "", "", "do not wait for the disk at the end", "lr", "", boolean(&s.noSync)},
		{ofWork, "depth", "", "root|top", "look at PATH (default), or its entries too", "p", "root top", enum(&s.depth, "root", "top")},
		{ofWork, "max-rate", "", "N", "at most N entries a second; 0 any (default)", "lv", "", rate(&s.maxRate)},
		{ofWork, "max-pressure", "", "P", "slow down while I/O pressure is above P per cent", "lv", "", percent(&s.maxPressure)},
		{ofWork, "nice", "", "", "lowest priority for processor and disk", "lvr", "", boolean(&s.nice)},

		{ofOutput, "progress", "p", "", "tell how far it is; by itself on a terminal", "lvr", "", boolean(&s.progress)},
		{ofOutput, "verbose", "v", "", "list each change on stdout, and every failure", "lvr", "", boolean(&s.verbose)},
		{ofOutput, "verbose", "v", "", "say what was done; at most 50 lines in all", "h", "", boolean(&s.verbose)},
		{ofOutput, "quiet", "q", "", "no result lines, no progress", "lpvr", "", boolean(&s.quiet)},
		{ofOutput, "json", "", "", "JSON lines on stdout, one object each", "lpvre", "", boolean(&s.json)},
		{ofOutput, "metrics", "", "FILE", "what became of each PATH, for node_exporter", "lpvr", "file", text(&s.metrics)},
		{ofOutput, "log-level", "", "LEVEL", "log to stderr: debug, info, warn, error", "lpvr", "debug info warn error", enum(&s.logLevel, "debug", "info", "warn", "error")},
		{ofOutput, "log-format", "", "FORMAT", "console (default) or json", "lpvr", "console json", enum(&s.logFormat, "console", "json")},
		{ofOutput, "man", "", "DIR", "", "l", "dir", text(&s.man)}, // for the Makefile
		{ofOutput, "help", "h", "", "this text", "lpvrheo", "", boolean(&s.help)},
		{ofOutput, "version", "V", "", "print the version", "l", "", boolean(&s.version)},
		// What hands do that know chcon: every command takes in what is beneath.
		{ofTree, "recursive", "R", "", "", "lpv", "", boolean(new(bool))},
		{ofTree, "recurse", "r", "", "", "lpv", "", boolean(new(bool))},
	}
}

// flagSet binds the options of a command, or of all (everyCommand).
func flagSet(s *settings, commands string) *pflag.FlagSet {
	fs := pflag.NewFlagSet("fastlabel", pflag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.Usage = func() {}
	for _, o := range options(s) {
		if !strings.ContainsAny(o.in, commands) {
			continue
		}
		f := fs.VarPF(o.value, o.long, o.short, o.help)
		if o.value.is == "bool" {
			f.NoOptDefVal = "true"
		}
	}
	return fs
}

// dispatch finds the command: the first word that is no flag, if it is a
// command's name and no -- stands before it. The label command has no name.
func dispatch(args []string) (command, []string, error) {
	all := flagSet(new(settings), everyCommand)
	all.SetInterspersed(false)
	if err := parseFlags(all, args); err != nil {
		return commands()[0], args, err
	}
	at := len(args) - all.NArg()
	if all.NArg() == 0 || all.ArgsLenAtDash() >= 0 {
		return commands()[0], args, nil
	}
	rest := slices.Concat(args[:at], args[at+1:])
	switch args[at] {
	case "label":
		c := commands()[0]
		c.named = true
		return c, rest, nil
	case "help": // of the command that follows, or of all
		if len(rest) > 0 && rest[0] != "" && rest[0][0] != '-' && !slices.Contains(callable(), rest[0]) {
			text := words.Brief(rest[0]) + " is no command"
			if near := nearest(rest[0], callable()); near != "" {
				text += ": did you mean " + near + "?"
			}
			return commands()[0], args, errors.New(text)
		}
		c, rest, err := dispatch(rest)
		return c, append([]string{"--help"}, rest...), err
	}
	for _, c := range commands()[1:] {
		if c.name == args[at] {
			return c, rest, nil
		}
	}
	return commands()[0], args, nil
}

// parse parses what is behind the command's name.
func parse(c command, args []string) (*settings, []string, error) {
	s := &settings{trust: "none", hardLinks: "label", depth: "root", logFormat: "console"}
	fs := flagSet(s, c.key)
	if err := parseFlags(fs, args); err != nil {
		return s, nil, err
	}
	if s.help && (fs.Changed("recursive") || fs.Changed("recurse")) {
		return s, nil, errors.New("-h is --help: a link is labelled itself without it, as by chcon -h")
	}
	if s.help || s.version {
		return s, nil, nil
	}
	for _, pair := range [][2]string{
		{"quiet", "verbose"},
		{"label", "reference"},
		{"record", "dry-run"},
		{"record", "files-from"},
		{"for", "label"},
		{"for", "reference"},
		{"for", "level"},
		{"for", "user"},
		{"for", "role"},
	} {
		if fs.Changed(pair[0]) && fs.Changed(pair[1]) {
			return s, nil, fmt.Errorf("--%s and --%s exclude each other", pair[0], pair[1])
		}
	}
	for _, whole := range []string{"label", "reference"} {
		for _, part := range []string{"type", "level", "user", "role"} {
			if fs.Changed(whole) && fs.Changed(part) {
				return s, nil, fmt.Errorf("--%s is a whole label, --%s a part of the default: give one of them", whole, part)
			}
		}
	}
	s.named = c.named
	if at := fs.ArgsLenAtDash(); at >= 0 {
		s.literal = fs.NArg() - at
	}
	if s.forPods == "-" && s.filesFrom == "-" {
		return s, nil, errors.New("--for and --files-from cannot both read stdin")
	}
	if s.null && s.filesFrom == "" {
		return s, nil, errors.New("--null needs --files-from")
	}
	return s, fs.Args(), nil
}

// parseFlags is fs.Parse with one sentence for each thing that can be wrong.
func parseFlags(fs *pflag.FlagSet, args []string) error {
	for _, a := range args {
		if a == "--" {
			break
		}
		if strings.HasPrefix(a, "-test.") { // pflag would drop it in silence
			return fmt.Errorf("unknown flag %s", words.Brief(a))
		}
	}
	if long := oneDash(fs, args); long != "" {
		return fmt.Errorf("unknown flag -%s: long flags have two dashes: --%s", long, long)
	}
	err := fs.Parse(args)
	var unknown *pflag.NotExistError
	var missing *pflag.ValueRequiredError
	var invalid *pflag.InvalidValueError
	var syntax *pflag.InvalidSyntaxError
	switch {
	case errors.As(err, &unknown):
		if short := unknown.GetSpecifiedShortnames(); short != "" {
			_, n := utf8.DecodeRuneInString(short)
			return fmt.Errorf("unknown flag %s", words.Plain("-"+short[:n]))
		}
		text := "unknown flag " + words.Brief("--"+unknown.GetSpecifiedName())
		if near := nearest(unknown.GetSpecifiedName(), longNames(fs)); near != "" {
			text += ": did you mean --" + near + "?"
		}
		return errors.New(text)
	case errors.As(err, &missing):
		return fmt.Errorf("--%s needs a value", missing.GetFlag().Name)
	case errors.As(err, &invalid):
		name := "--" + invalid.GetFlag().Name
		if invalid.GetFlag().NoOptDefVal == "" {
			name += " " + words.Brief(invalid.GetValue())
		}
		return fmt.Errorf("%s: %w", name, invalid.Unwrap())
	case errors.As(err, &syntax):
		return fmt.Errorf("bad flag %s", words.Brief(syntax.GetSpecifiedFlag()))
	}
	return err
}

// oneDash finds a long flag behind a single dash, "" if there is none: taken
// as short ones, -quiet would be -q, -u iet. It steps over values as pflag does.
func oneDash(fs *pflag.FlagSet, args []string) string {
	for i := 0; i < len(args) && args[i] != "--"; i++ {
		name, _, with := strings.Cut(strings.TrimLeft(args[i], "-"), "=")
		switch {
		case len(args[i]) < 2 || args[i][0] != '-':
			continue
		case args[i][1] == '-':
			if f := fs.Lookup(name); f != nil && f.NoOptDefVal == "" && !with {
				i++
			}
			continue
		case len(name) > 1 && fs.Lookup(name) != nil:
			return name
		}
		for at := 1; at < len(args[i]) && args[i][at] < utf8.RuneSelf; at++ {
			f := fs.ShorthandLookup(args[i][at : at+1])
			if f == nil {
				break
			}
			if f.NoOptDefVal == "" {
				if at == len(args[i])-1 {
					i++
				}
				break
			}
		}
	}
	return ""
}

func longNames(fs *pflag.FlagSet) (names []string) {
	fs.VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	return names
}
