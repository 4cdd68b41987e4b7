// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/report"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/words"
	"github.com/fastlabel/fastlabel/relabel"
)

// settings are the values of the flags.
type settings struct {
	label, user, role, typ, level, reference string

	xdev      bool
	exclude   []string
	filesFrom string
	null      bool

	dryRun           bool
	threads          uint
	trust, hardLinks string // trust is --skip
	exact            bool
	timeout          time.Duration
	noSeal, sync     bool
	depth            string

	onlyParts            []string      // --only
	only                 relabel.Parts // the same; 0: all
	contexts, root       string
	force, ignoreMissing bool

	maxRate uint // entries a second; 0: no limit

	verbose            int
	quiet, json        bool
	progress           string
	version, recursive bool

	unhelped error // why --help was refused

	command  string // "" labels
	given    *pflag.FlagSet
	named    bool     // the command was, so no operand was meant as one
	callable []string // the words that are commands
	literal  int      // of the operands, how many stand behind --
}

// choices are the flags whose value is one of some words.
var choices = map[string][]string{
	"skip":       {"none", "root", "top"},
	"depth":      {"root", "top"},
	"hard-links": {"label", "skip", "error"},
	"only":       {"type", "level", "user", "role"},
	"progress":   {"always", "plain"},
}

// types are offered for --type: what container-selinux has for what is bound into containers.
var types = map[string][]string{"type": {"container_file_t", "container_log_t", "container_ro_file_t", "container_share_t", "container_var_lib_t", "svirt_image_t"}}

// maxThreads guards against a mistyped number: each worker holds a thread of the
// kernel.
const maxThreads = 1024

// advanced are the flags that --help lists last.
var advanced = []string{"hard-links", "exact", "no-seal", "sync"}

// addFlags adds the flags that commands of this letter have: l(abel), p(robe), v(erify),
// h(ook), restore(c)on. One without a text is hidden.
func addFlags(c *cobra.Command, letter string, s *settings) {
	f := c.Flags()
	f.SortFlags = false
	in := func(letters string) bool { return strings.Contains(letters, letter) }
	if in("lpv") {
		f.StringVar(&s.label, "label", "", "the whole label: `CONTEXT`")
		f.StringVarP(&s.typ, "type", "t", "", "another `TYPE` than container_file_t")
		f.StringVarP(&s.level, "level", "l", "", "another `LEVEL` than s0, such as s0:c1,c2")
		f.StringVarP(&s.user, "user", "u", "", "another `USER` than system_u")
		f.StringVar(&s.role, "role", "", "another `ROLE` than object_r")
		f.StringVar(&s.reference, "reference", "", "the label of `FILE`, or of what it links to")
		// For people who are used to chcon: all that is beneath PATH is always included.
		f.BoolVarP(&s.recursive, "recursive", "R", false, "")
		for part := range parts {
			c.MarkFlagsMutuallyExclusive("label", "reference", part)
		}
	}
	switch letter {
	case "l":
		f.StringArrayVar(&s.onlyParts, "only", nil, "change just this `PART`: type, level, user, role")
		f.StringVar(&s.trust, "skip", "none", "skip if labelled, `HOW`: root, top")
		f.BoolVar(&s.exact, "exact", false, "read every label before writing it")
		f.BoolVar(&s.noSeal, "no-seal", false, "do not seal PATH during the run")
		f.BoolVar(&s.sync, "sync", false, "put all on disk before PATH's label, and then that")
		f.BoolVarP(&s.version, "version", "V", false, "")
		c.MarkFlagsMutuallyExclusive("only", "skip")
	case "p":
		f.StringVar(&s.depth, "depth", "root", "`HOW` much to read: root, or top")
	case "c":
		f.StringVar(&s.contexts, "contexts", "", "the file_contexts `FILE`; default: the policy's")
		f.StringVar(&s.root, "root", "", "label what is in `DIR` as if that were /")
		f.BoolVarP(&s.force, "force", "F", false, "change the whole label, customizable types too")
		f.BoolVarP(&s.recursive, "recursive", "R", false, "what is beneath PATH too")
		f.BoolVarP(&s.ignoreMissing, "ignore-missing", "i", false, "skip a PATH that does not exist")
		f.BoolP("all-mounts", "m", false, "") // what restorecon's -m asks for is always done
	}
	if in("lpvc") {
		f.StringVarP(&s.filesFrom, "files-from", "f", "", "more PATHs, one a line of `FILE`; - is stdin")
		f.BoolVarP(&s.null, "null", "0", false, "PATHs in FILE end in NUL")
		f.BoolVarP(&s.recursive, "recurse", "r", false, "")
	}
	if in("lc") {
		f.BoolVarP(&s.dryRun, "dry-run", "n", false, "write nothing, say what would be")
	}
	if in("lvc") {
		f.BoolVarP(&s.xdev, "one-file-system", "x", false, "skip other filesystems and btrfs subvolumes")
		f.StringArrayVarP(&s.exclude, "exclude", "e", nil, "skip `DIR`, or what the glob matches in PATH")
		f.StringVar(&s.hardLinks, "hard-links", "label", "hard links, `HOW`: label, skip or error")
		f.UintVarP(&s.threads, "threads", "T", 0, fmt.Sprintf("`N` workers, up to %d; 0: chosen", maxThreads))
		f.UintVar(&s.maxRate, "max-rate", 0, "at most `N` entries a second")
		f.StringVarP(&s.progress, "progress", "p", "", "``show progress; plain: in whole lines")
		f.Lookup("progress").NoOptDefVal = "always"
	}
	if in("lvch") {
		f.DurationVar(&s.timeout, "timeout", 0, "stop after this `TIME`, such as 90s")
		each := map[string]string{"h": "say what was done; at most 50 lines in all", "v": "list some of what differs, by label too; -vv all"}
		f.CountVarP(&s.verbose, "verbose", "v", "``"+cmp.Or(each[letter], "list each change on stdout, and each failure"))
	}
	if in("lpvc") {
		f.BoolVarP(&s.quiet, "quiet", "q", false, "failures alone, also with --json")
		f.BoolVar(&s.json, "json", false, "JSON lines on stdout, one object each")
	}
	if in("lvc") {
		c.MarkFlagsMutuallyExclusive("quiet", "verbose")
	}
	f.BoolP("help", "h", false, "")
	f.VisitAll(func(f *pflag.Flag) {
		f.Hidden = f.Usage == ""
		offer := cobra.FixedCompletions(slices.Concat(choices[f.Name], types[f.Name]), cobra.ShellCompDirectiveNoFileComp)
		switch f.Name {
		case "exclude":
			offer = cobra.FixedCompletions(nil, cobra.ShellCompDirectiveFilterDirs)
		case "reference", "contexts", "files-from":
			return // files, which is the default
		}
		_ = c.RegisterFlagCompletionFunc(f.Name, offer) // the flag is there, and new
	})
}

// letters are the letters by which addFlags knows the commands that work.
var letters = map[string]string{"": "l", "probe": "p", "verify": "v", "hook": "h", "restorecon": "c"}

// commandTree returns fastlabel itself, which holds the other commands. What is given
// is put into s, and run is called by the commands that work. Of the others, those have
// flags that args name; nil names all.
func commandTree(s *settings, args []string, run func(operands []string) error) *cobra.Command {
	*s = settings{}
	root := labelCommand("fastlabel")
	root.AddCommand(hookCommand(), probeCommand(), restoreconCommand(), verifyCommand(), versionCommand(), labelCommand("label"))
	root.InitDefaultHelpCmd()
	root.SilenceErrors, root.SilenceUsage = true, true
	root.ValidArgsFunction = cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault)
	root.SetFlagErrorFunc(flagError)
	root.SetHelpFunc(func(c *cobra.Command, _ []string) {
		switch operands := c.Flags().Args(); {
		case s.recursive && nameOf(c) != "restorecon":
			s.unhelped = errors.New("-h is --help: a link is labelled itself without it, as by chcon -h")
		case c.Name() == "completion" && len(operands) > 0:
			s.unhelped = fmt.Errorf("completion %s: not one of bash, zsh, fish", words.Brief(operands[0]))
		default:
			fmt.Fprint(c.OutOrStdout(), help(c))
		}
	})
	for _, c := range slices.Concat([]*cobra.Command{root}, root.Commands()) {
		letter, works := letters[nameOf(c)]
		if !works || c.Name() == "help" {
			continue
		}
		c.RunE = func(c *cobra.Command, operands []string) error {
			s.command, s.named, s.given = nameOf(c), c.HasParent(), c.Flags()
			for _, each := range root.Commands() {
				s.callable = append(s.callable, each.Name())
			}
			if at := c.ArgsLenAtDash(); at >= 0 {
				s.literal = len(operands) - at
			}
			if err := s.check(); err != nil {
				return err
			}
			if len(operands) > s.literal && !s.named {
				if instead, ok := removedCommands[operands[0]]; ok {
					return fmt.Errorf("fastlabel %s was removed: %s", operands[0], instead)
				}
			}
			return run(operands)
		}
		if args == nil || !c.HasParent() || slices.Contains(args, c.Name()) {
			addFlags(c, letter, s)
		}
	}
	return root
}

// nameOf returns the name that the code has for the command: "" for the one that labels,
// also as label or help.
func nameOf(c *cobra.Command) string {
	if !c.HasParent() || c.Name() == "label" || c.Name() == "help" {
		return ""
	}
	return c.Name()
}

// check refuses values that pflag takes: a flag in the place of one, as in -t -n PATH. An empty
// one is an unset variable in a script: to go on with the default would label a tree wrongly.
func (s *settings) check() (err error) {
	for _, name := range s.onlyParts {
		s.only |= parts[name]
	}
	s.given.Visit(func(f *pflag.Flag) {
		for _, v := range valuesOf(f) {
			choice, ok := choices[f.Name]
			switch {
			case err != nil:
			case v == "":
				err = fmt.Errorf("--%s: it is empty (an unset variable?)", f.Name)
			case len(v) > 1 && v[0] == '-' && strings.HasPrefix(f.Value.Type(), "string"):
				err = fmt.Errorf("--%s: no value before %s", f.Name, words.Brief(v))
			case ok && !slices.Contains(choice, v):
				err = fmt.Errorf("--%s %s: not one of %s", f.Name, v, strings.Join(choice, ", "))
			case s.only != 0 && s.only&parts[f.Name] == 0 && parts[f.Name] != 0:
				err = fmt.Errorf("--%s has no effect here without --only %[1]s", f.Name)
			}
		}
	})
	switch {
	case err != nil:
	case s.threads > maxThreads:
		err = fmt.Errorf("--threads %d: more than %d", s.threads, maxThreads)
	case s.timeout < 0:
		err = fmt.Errorf("--timeout %v: it is negative", s.timeout)
	case s.null && s.filesFrom == "":
		err = errors.New("--null needs --files-from")
	}
	return err
}

// valuesOf returns the values that the flag was given.
func valuesOf(f *pflag.Flag) []string {
	if all, ok := f.Value.(pflag.SliceValue); ok {
		return all.GetSlice()
	}
	return []string{f.Value.String()}
}

// flagError adds to pflag's sentence what was meant perhaps, or what to use instead.
func flagError(c *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) || unknown.GetSpecifiedShortnames() != "" {
		return err
	}
	name := unknown.GetSpecifiedName()
	if instead, ok := removedFlags[name]; ok {
		return fmt.Errorf("--%s was removed: %s", name, instead)
	}
	var all []string
	c.Flags().VisitAll(func(f *pflag.Flag) { all = append(all, f.Name) })
	if near := nearest(name, all); near != "" {
		err = fmt.Errorf("%w; did you mean --%s?", err, near)
	}
	return err
}

// mistaken refuses a long flag behind a single dash: taken as short ones, -quiet would be -q, -u iet.
func mistaken(c *cobra.Command, args []string) error {
	for _, a := range args {
		name, _, _ := strings.Cut(strings.TrimPrefix(a, "-"), "=")
		switch {
		case a == "--":
			return nil
		case len(name) > 1 && a[0] == '-' && c.Flags().Lookup(name) != nil:
			return fmt.Errorf("unknown flag -%s: long flags have two dashes: --%s", name, name)
		}
	}
	return nil
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

// isSlip reports whether at most one letter of b is wrong, missing, too many, or swapped
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

var listed = fmt.Sprintf("The first %d failures of each PATH are listed; with -v or --json all are.\n", report.MaxListed)

const inJSON = `In JSON, a path that is not UTF-8 has its exact bytes in path_base64.
`

const usageLine = "%-6s %-36s %s\n"

// help returns the text of --help. That of fastlabel itself begins with all commands.
func help(c *cobra.Command) string {
	var b strings.Builder
	if nameOf(c) == "" {
		c = c.Root()
		c.InitDefaultCompletionCmd()
	}
	fmt.Fprintf(&b, usageLine, "Usage:", c.UseLine(), c.Short)
	if !c.HasParent() {
		for _, each := range c.Commands() {
			switch each.Name() {
			case "label", "help":
			case "completion":
				fmt.Fprintf(&b, usageLine, "", each.CommandPath()+" SHELL", "print a script for bash, zsh or fish")
			default:
				fmt.Fprintf(&b, usageLine, "", each.UseLine(), each.Short)
			}
		}
	}
	for _, title := range []string{"Flags", "Advanced flags"} {
		group := pflag.NewFlagSet("", pflag.ContinueOnError)
		group.SortFlags = false
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if slices.Contains(advanced, f.Name) == (title != "Flags") {
				group.AddFlag(f)
			}
		})
		if text := group.FlagUsages(); text != "" {
			b.WriteString("\n" + title + ":\n" + text)
		}
	}
	if c.Long != "" {
		b.WriteString("\n" + c.Long)
	}
	if c.Example != "" {
		b.WriteString("\nExamples:\n" + c.Example)
	}
	return b.String()
}
