// SPDX-License-Identifier: Apache-2.0

// Command man writes the manual pages of fastlabel with cobra's generator, from what
// --help prints. Neither the command nor the library has what the generator needs.
//
//	go run . PROGRAM VERSION DIR
//
// PROGRAM is fastlabel, built for this machine. The date on the pages is
// SOURCE_DATE_EPOCH, or today.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/spf13/pflag"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "man:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 3 {
		return errors.New("usage: man PROGRAM VERSION DIR")
	}
	program, version, dir := args[0], args[1], args[2]
	help := func(command ...string) (string, error) {
		text, err := exec.Command(program, append(command, "--help")...).Output()
		if err != nil {
			return "", fmt.Errorf("%s %v --help: %w", program, command, err)
		}
		return string(text), nil
	}
	text, err := help()
	if err != nil {
		return err
	}
	calls := usage(text)
	if len(calls) < 2 {
		return fmt.Errorf("no commands in what --help prints:\n%s", text)
	}
	root := page(calls[0], text)
	root.DisableAutoGenTag = true
	for _, c := range calls[1:] {
		name := strings.Fields(c.line)[1]
		text, err := help(name)
		if err != nil {
			return err
		}
		c.line = strings.TrimPrefix(c.line, root.Name()+" ")
		root.AddCommand(page(c, text))
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return doc.GenManTree(root, &doc.GenManHeader{Section: "1", Source: "fastlabel " + version, Manual: "User Commands"}, dir)
}

// call is a line of the usage: how a command is called, and what it does.
type call struct{ line, does string }

// usage returns the calls at the beginning of a help text.
func usage(text string) (calls []call) {
	block, _, _ := strings.Cut(strings.TrimPrefix(text, "Usage:"), "\n\n")
	for line := range strings.Lines(block) {
		if line, does, ok := strings.Cut(strings.TrimSpace(line), "  "); ok {
			calls = append(calls, call{line, strings.TrimSpace(does)})
		}
	}
	return calls
}

var (
	heading = regexp.MustCompile(`^(Flags|Advanced flags|Examples):\n`)
	option  = regexp.MustCompile(`^ +(?:-(\w), )?--([\w-]+)(?:\[=\S+\])?(?: (\S+))? {2,}(.+)$`)
)

// page returns a command that has what its help text says. The text between flags and
// examples stays as it is: its lines are no Markdown.
func page(c call, text string) *cobra.Command {
	cmd := &cobra.Command{Use: c.line, Short: "SELinux labels: " + c.does, Run: func(*cobra.Command, []string) {}}
	cmd.Flags().SortFlags = false
	var long []string
	_, rest, _ := strings.Cut(text, "\n\n")
	for block := range strings.SplitSeq(strings.TrimSpace(rest), "\n\n") {
		switch what := heading.FindString(block + "\n"); what {
		case "":
			long = append(long, block)
		case "Examples:\n":
			cmd.Example = strings.TrimPrefix(block, what)
		default:
			for line := range strings.Lines(strings.TrimPrefix(block, what)) {
				addFlag(cmd.Flags(), strings.TrimSuffix(line, "\n"))
			}
		}
	}
	if len(long) > 0 {
		cmd.Long = "```\n" + strings.Join(long, "\n\n") + "\n```"
	}
	return cmd
}

// addFlag adds the flag that the line describes. The generator prints a flag's default
// where its value's name belongs, so the name is given as the default.
func addFlag(flags *pflag.FlagSet, line string) {
	m := option.FindStringSubmatch(line)
	switch {
	case m == nil:
		panic(fmt.Sprintf("not a flag: %q", line))
	case m[3] == "":
		flags.BoolP(m[2], m[1], false, m[4])
	default:
		flags.VarP(value(m[3]), m[2], m[1], m[4])
	}
}

// value is a flag's value with its name as the default.
type value string

func (v value) String() string   { return string(v) }
func (v value) Set(string) error { return nil }
func (v value) Type() string     { return "" }
