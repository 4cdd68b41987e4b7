// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/words"
	"github.com/fastlabel/fastlabel/relabel"
)

// settings are the flags, parsed.
type settings struct {
	label, user, role, typ, level, reference string

	xdev      bool
	exclude   []string
	filesFrom string
	null      bool

	dryRun           bool
	threads          int
	trust, hardLinks string // trust is --skip
	exact            bool
	timeout          time.Duration
	noSeal, sync     bool
	depth            string

	only                 relabel.Parts // --only; 0: all
	from, contexts       string
	force, ignoreMissing bool

	maxRate int // entries a second; 0: no limit

	verbose, quiet, json bool
	progress             bool
	version, recursive   bool

	unhelped error // why --help was refused

	command  string // "" labels
	given    *pflag.FlagSet
	named    bool     // the command was, so no operand was meant as one
	callable []string // the words that are commands
	literal  int      // of the operands, how many stand behind --
}

// option is one flag.
type option struct {
	group, long, short string
	arg                string // what the help calls its value; "" for a switch
	help               string // one line; "" hides it
	in                 string // the commands that have it: l(abel) p(robe) v(erify) h(ook) restore(c)on o(ther)
	offer              string // values to complete: see offering
	set                func(string) error
}

// Groups of the help, in order.
const (
	most   = "Flags"
	expert = "Advanced flags"
)

// containerTypes are the types that container-selinux has for what is bound into containers.
const containerTypes = "container_file_t container_log_t container_ro_file_t container_share_t container_var_lib_t svirt_image_t"

func options(s *settings) []option {
	return []option{
		{most, "label", "", "CONTEXT", "the whole label", "lpv", "", text(&s.label)},
		{most, "type", "t", "TYPE", "another type than container_file_t", "lpv", containerTypes, text(&s.typ)},
		{most, "level", "l", "LEVEL", "another level than s0, such as s0:c1,c2", "lpv", "", text(&s.level)},
		{most, "user", "u", "USER", "another user than system_u", "lpv", "", text(&s.user)},
		{most, "role", "", "ROLE", "another role than object_r", "lpv", "", text(&s.role)},
		{most, "reference", "", "FILE", "the label of FILE, or of what it links to", "lpv", "file", text(&s.reference)},

		{most, "only", "", "PART", "change only the type, level, user or role; repeatable", "l", "type level user role", part(&s.only)},
		{most, "from", "", "CONTEXT", "only what has this label, any part of which may be *", "l", "", text(&s.from)},
		{most, "contexts", "", "FILE", "the file_contexts to go by, not the loaded ones", "c", "file", text(&s.contexts)},
		{most, "force", "F", "", "change the whole label, of customizable types too", "c", "", boolean(&s.force)},
		{most, "recursive", "R", "", "what is beneath PATH too", "c", "", boolean(&s.recursive)},
		{most, "recurse", "r", "", "", "c", "", boolean(&s.recursive)},

		{most, "one-file-system", "x", "", "skip what is mounted below PATH", "lvc", "", boolean(&s.xdev)},
		{most, "exclude", "e", "DIR", "skip DIR; may be repeated", "lvc", "dir", list(&s.exclude)},
		{most, "files-from", "f", "FILE", "more PATHs, one a line; - is stdin", "lpvc", "file", text(&s.filesFrom)},
		{most, "null", "0", "", "PATHs in FILE end in NUL", "lpvc", "", boolean(&s.null)},
		{most, "ignore-missing", "i", "", "skip a PATH that does not exist", "c", "", boolean(&s.ignoreMissing)},
		{most, "all-mounts", "m", "", "", "c", "", boolean(new(bool))}, // what restorecon's -m asks for is always done

		{most, "dry-run", "n", "", "write nothing, say what would be", "lc", "", boolean(&s.dryRun)},
		{most, "threads", "T", "N", fmt.Sprintf("workers, up to %d; 0: chosen (default)", maxThreads), "lvc", "", upTo(&s.threads, maxThreads)},
		{most, "skip", "", "HOW", "what to skip: none (default), root, top", "l", "none root top", enum(&s.trust, "none", "root", "top")},
		{most, "timeout", "", "DURATION", "stop after it, such as 90s; 0: never (default)", "lvc", "", duration(&s.timeout)},
		{most, "timeout", "", "DURATION", "stop after it, such as 90s; 0: chosen (default)", "h", "", duration(&s.timeout)},
		{most, "depth", "", "root|top", "read PATH's label (default), or its entries' too", "p", "root top", enum(&s.depth, "root", "top")},
		{most, "max-rate", "", "N", "at most N entries a second; 0: no limit (default)", "lvc", "", upTo(&s.maxRate, maxRate)},

		{most, "progress", "p", "", "show progress; on a terminal that is the default", "lvc", "", boolean(&s.progress)},
		{most, "verbose", "v", "", "list each change on stdout, and every failure", "lvc", "", boolean(&s.verbose)},
		{most, "verbose", "v", "", "say what was done; at most 50 lines in all", "h", "", boolean(&s.verbose)},
		{most, "quiet", "q", "", "no result lines, no progress", "lpvc", "", boolean(&s.quiet)},
		{most, "json", "", "", "JSON lines on stdout, one object each", "lpvc", "", boolean(&s.json)},
		{most, "help", "h", "", "this text", "lpvhco", "", boolean(new(bool))},
		{most, "version", "V", "", "print the version", "l", "", boolean(&s.version)},

		{expert, "hard-links", "", "HOW", "hard-linked files: label (default), skip or error", "lvc", "label skip error", enum(&s.hardLinks, "label", "skip", "error")},
		{expert, "exact", "", "", "read every label before writing it", "l", "", boolean(&s.exact)},
		{expert, "no-seal", "", "", "do not seal PATH during the run", "l", "", boolean(&s.noSeal)},
		{expert, "sync", "", "", "put all on disk before PATH's label, and then that", "l", "", boolean(&s.sync)},

		// For people who are used to chcon: every command includes what is beneath PATH.
		{most, "recursive", "R", "", "", "lpv", "", boolean(&s.recursive)},
		{most, "recurse", "r", "", "", "lpv", "", boolean(&s.recursive)},
	}
}

// ofGroup is the annotation of a flag that holds its group.
const ofGroup = "group"

// grouped are the flags that the help shows, in groups that have any.
func grouped(c *cobra.Command) (groups []*pflag.FlagSet) {
	for _, name := range []string{most, expert} {
		fs := pflag.NewFlagSet(name, pflag.ContinueOnError)
		fs.SortFlags = false
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden && f.Annotations[ofGroup][0] == name {
				fs.AddFlag(f)
			}
		})
		if fs.HasFlags() {
			groups = append(groups, fs)
		}
	}
	return groups
}

// addFlags gives c those of the flags that commands of this letter have.
func addFlags(c *cobra.Command, letter string, all []option) {
	c.Flags().SortFlags = false
	for _, o := range all {
		if !strings.Contains(o.in, letter) {
			continue
		}
		f := c.Flags().VarPF(&value{arg: cmp.Or(o.arg, "bool"), set: o.set}, o.long, o.short, o.help)
		f.Annotations = map[string][]string{ofGroup: {o.group}}
		f.Hidden = o.help == ""
		if o.arg == "" {
			f.NoOptDefVal = "true"
		} else if err := c.RegisterFlagCompletionFunc(o.long, offering(o.offer)); err != nil {
			panic(err) // the flag is there, and new
		}
	}
}

// letters are the letters by which the table of flags knows the commands that work.
var letters = map[string]string{"": "l", "probe": "p", "verify": "v", "hook": "h", "restorecon": "c"}

// commandTree returns fastlabel itself, which holds the other commands. What is given
// is put into s, and run is called by the commands that work. Of the others, those have
// flags that args name; nil names all.
func commandTree(s *settings, args []string, run func(operands []string) error) *cobra.Command {
	*s = settings{trust: "none", hardLinks: "label", depth: "root"}
	root := labelCommand("fastlabel")
	shown := []*cobra.Command{probeCommand(), restoreconCommand(), verifyCommand(), hookCommand(), completionCommand(), versionCommand()}
	root.SilenceErrors, root.SilenceUsage = true, true
	root.Args, root.ValidArgsFunction = cobra.ArbitraryArgs, cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault)
	root.SetFlagErrorFunc(flagError)
	root.SetHelpFunc(func(c *cobra.Command, _ []string) {
		if s.recursive && nameOf(c) != "restorecon" {
			s.unhelped = errors.New("-h is --help: a link is labelled itself without it, as by chcon -h")
			return
		}
		fmt.Fprint(c.OutOrStdout(), help(c, shown))
	})
	root.AddCommand(shown...)
	helps := helpCommand(root)
	root.SetHelpCommand(helps)
	root.AddCommand(labelCommand("label"), helps)
	all := options(s)
	for _, c := range slices.Concat([]*cobra.Command{root}, root.Commands()) {
		letter := "o"
		if c.RunE == nil {
			letter = letters[nameOf(c)]
			c.RunE = func(c *cobra.Command, operands []string) error {
				s.command, s.named, s.given, s.callable = nameOf(c), c.HasParent(), c.Flags(), callable(root)
				if at := c.ArgsLenAtDash(); at >= 0 {
					s.literal = len(operands) - at
				}
				if err := s.check(c.Flags()); err != nil {
					return err
				}
				if len(operands) > s.literal && !s.named {
					if instead, ok := removedCommands[operands[0]]; ok {
						return fmt.Errorf("fastlabel %s was removed: %s", operands[0], instead)
					}
				}
				return run(operands)
			}
		}
		if args == nil || !c.HasParent() || slices.Contains(args, c.Name()) {
			addFlags(c, letter, all)
		}
	}
	return root
}

// nameOf is what the code knows the command by: "" is what labels, also as label or
// help.
func nameOf(c *cobra.Command) string {
	if !c.HasParent() || c.Name() == "label" || c.Name() == "help" {
		return ""
	}
	return c.Name()
}

// check finds flags that exclude each other.
func (s *settings) check(fs *pflag.FlagSet) error {
	for _, pair := range [][2]string{
		{"quiet", "verbose"},
		{"label", "reference"},
		{"only", "skip"},
		{"from", "skip"},
	} {
		if fs.Changed(pair[0]) && fs.Changed(pair[1]) {
			return fmt.Errorf("--%s and --%s exclude each other", pair[0], pair[1])
		}
	}
	for _, whole := range []string{"label", "reference"} {
		for _, part := range []string{"type", "level", "user", "role"} {
			if fs.Changed(whole) && fs.Changed(part) {
				return fmt.Errorf("--%s is a whole label, --%s a part of the default: give one of them", whole, part)
			}
		}
	}
	if s.null && s.filesFrom == "" {
		return errors.New("--null needs --files-from")
	}
	return nil
}

// flagError has one sentence for each thing that can be wrong with a flag.
func flagError(c *cobra.Command, err error) error {
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
		if instead, ok := removedFlags[unknown.GetSpecifiedName()]; ok {
			return fmt.Errorf("--%s was removed: %s", unknown.GetSpecifiedName(), instead)
		}
		text := "unknown flag " + words.Brief("--"+unknown.GetSpecifiedName())
		if near := nearest(unknown.GetSpecifiedName(), longNames(c.Flags())); near != "" {
			text += "; did you mean --" + near + "?"
		}
		return errors.New(text)
	case errors.As(err, &missing):
		return fmt.Errorf("--%s needs a value", missing.GetFlag().Name)
	case errors.As(err, &invalid):
		name := "--" + invalid.GetFlag().Name
		if instead, ok := removedValues[name+" "+invalid.GetValue()]; ok {
			return fmt.Errorf("%s %s was removed: %s", name, invalid.GetValue(), instead)
		}
		if invalid.GetFlag().NoOptDefVal == "" {
			name += " " + words.Brief(invalid.GetValue())
		}
		return fmt.Errorf("%s: %w", name, invalid.Unwrap())
	case errors.As(err, &syntax):
		return fmt.Errorf("bad flag %s", words.Brief(syntax.GetSpecifiedFlag()))
	}
	return err
}

// mistaken refuses what pflag would take for something else: a flag in the place of
// a value, as in -t -n PATH, a long flag behind a single
// dash: taken as short ones, -quiet would be -q, -u iet; and what begins as a flag of go
// test, which pflag drops.
func mistaken(c *cobra.Command, args []string) error {
	var takes *pflag.Flag // the argument as its value
	for _, a := range args {
		name, _, _ := strings.Cut(strings.TrimPrefix(a, "-"), "=")
		switch {
		case strings.HasPrefix(a, "-test."):
			return fmt.Errorf("unknown flag %s", words.Brief(a))
		case len(name) > 1 && a[0] == '-' && c.Flags().Lookup(name) != nil:
			return fmt.Errorf("unknown flag -%s: long flags have two dashes: --%s", name, name)
		case takes != nil && len(a) > 1 && a[0] == '-' && (a[1] < '0' || a[1] > '9'):
			return fmt.Errorf("--%s: no value before %s: one that begins with - is given as --%[1]s=VALUE", takes.Name, words.Brief(a))
		case takes != nil:
			takes = nil
			continue
		case a == "--":
			return nil
		}
		takes = takesNext(c.Flags(), a)
	}
	return nil
}

// takesNext is the flag in the argument a that has the next one as its value.
func takesNext(fs *pflag.FlagSet, a string) *pflag.Flag {
	if long, is := strings.CutPrefix(a, "--"); is {
		if f := fs.Lookup(long); f != nil && f.NoOptDefVal == "" {
			return f
		}
		return nil
	}
	short, is := strings.CutPrefix(a, "-")
	for i := range short {
		f := fs.ShorthandLookup(short[i : i+1])
		switch {
		case !is || f == nil:
			return nil
		case f.NoOptDefVal == "" && i == len(short)-1:
			return f
		case f.NoOptDefVal == "":
			return nil // the rest is its value
		}
	}
	return nil
}

func longNames(fs *pflag.FlagSet) (names []string) {
	fs.VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	return names
}

// callable are the words that are commands in front of all PATHs.
func callable(root *cobra.Command) (names []string) {
	for _, c := range root.Commands() {
		names = append(names, c.Name())
	}
	return names
}

// nearest returns which of words was perhaps meant by word, "" if none. Short words
// are all near.
func nearest(word string, words []string) string {
	for _, w := range words {
		if min(len(w), len(word)) >= 4 && isSlip(word, w) {
			return w
		}
	}
	return ""
}

// isSlip tells whether at most one letter of b is wrong, missing, too many, or swapped
// with the next in a.
func isSlip(a, b string) bool {
	for a != "" && b != "" && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for a != "" && b != "" && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	swapped := len(a) == 2 && len(b) == 2 && a[0] == b[1] && a[1] == b[0]
	return len(a) < 2 && len(b) < 2 || swapped
}
