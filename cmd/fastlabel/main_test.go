// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"go/doc/comment"
	"go/parser"
	"go/token"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/exit"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/words"
	"github.com/fastlabel/fastlabel/test/treetest"
)

var update = flag.Bool("update", false, "write the golden files")

// call is one call of the command in a golden file.
type call struct {
	args  []string
	stdin string
}

func calls(lines ...string) []call {
	var all []call
	for _, l := range lines {
		all = append(all, call{args: strings.Fields(l)})
	}
	return all
}

// transcript runs the calls and writes down what a user would see.
func transcript(a app, calls []call) string {
	var b strings.Builder
	for _, c := range calls {
		var out, err bytes.Buffer
		code := a.run(context.Background(), strings.NewReader(c.stdin), &out, &err, c.args)
		b.WriteString("$ fastlabel")
		for _, arg := range c.args {
			b.WriteString(" " + words.Brief(arg))
		}
		fmt.Fprintf(&b, "\n%s%sexit %d\n\n", prefixed("1> ", out.String()), prefixed("2> ", err.String()), code)
	}
	return b.String()
}

func prefixed(mark, text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(strings.TrimRight(mark+line, " \n") + "\n")
	}
	return b.String()
}

// noTree is the commands, which nobody calls.
func noTree() *cobra.Command { return commandTree(new(settings), nil, nil) }

// pageOf is what --help prints.
func pageOf(c *cobra.Command) string {
	var b strings.Builder
	c.SetOut(&b)
	_ = c.Help()
	return b.String()
}

// parsed is what the arguments ask for, if it is work.
func parsed(args []string) (s settings, operands []string, err error) {
	root := commandTree(&s, args, func(o []string) error { operands = o; return nil })
	root.SetArgs(args)
	root.SetOut(io.Discard)
	_, err = root.ExecuteC()
	return s, operands, err
}

// golden compares got with testdata/NAME.txt, or writes it with -update.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join(testdata, name+".txt")
	if *update {
		treetest.Must(t, os.WriteFile(file, []byte(got), 0o644))
	}
	text, err := os.ReadFile(file)
	treetest.Must(t, err)
	want := strings.Split(string(text), "\n\n")
	for i, block := range strings.Split(got, "\n\n") {
		if i >= len(want) || block != want[i] {
			w := ""
			if i < len(want) {
				w = want[i]
			}
			t.Errorf("%s\n\nis not as in %s:\n\n%s", block, file, w)
		}
	}
	if n := strings.Count(got, "\n\n") + 1; n < len(want) {
		t.Errorf("%s holds %d calls more", file, len(want)-n)
	}
}

// testdata is absolute: some tests change directory.
var testdata = func() string {
	dir, err := filepath.Abs("testdata")
	if err != nil {
		panic(err)
	}
	return dir
}()

func TestHelp(t *testing.T) {
	got := transcript(app{}, calls("--help", "probe --help", "restorecon --help", "verify --help", "hook --help", "version --help"))
	golden(t, "help", got)
	if text := pageOf(noTree()); strings.Count(text, "\n") > 45 {
		t.Errorf("more than 45 lines:\n%s", text)
	}
	for line := range strings.Lines(got) {
		if len(strings.TrimPrefix(line, "1> ")) > 81 {
			t.Errorf("wider than 80 columns: %s", line)
		}
	}
}

// The usage and the examples in main.go's doc comment are those of --help.
func TestDocComment(t *testing.T) {
	f, err := parser.ParseFile(token.NewFileSet(), "main.go", nil, parser.ParseComments|parser.PackageClauseOnly)
	treetest.Must(t, err)
	var code []string
	for _, block := range new(comment.Parser).Parse(f.Doc.Text()).Content {
		if c, ok := block.(*comment.Code); ok {
			code = append(code, c.Text)
		}
	}
	for i, block := range strings.SplitN(strings.TrimSpace(code[0]), "\n\n", 2) {
		if all := pageOf(noTree()); i == 0 && !strings.HasPrefix(all, block+"\n\n") || i == 1 && !strings.HasSuffix(all, "\n\n"+block+"\n") {
			t.Errorf("the doc comment's usage is not of --help:\n%s", all)
		}
	}
	// The map names every file, and no other.
	files, err := filepath.Glob("*.go")
	treetest.Must(t, err)
	for _, file := range files {
		name := strings.NewReplacer("_linux", "_*", "_other", "_*").Replace(file)
		if !strings.HasSuffix(file, "_test.go") && !strings.Contains(code[1], name) {
			t.Errorf("the map in main.go lacks %s", name)
		}
	}
}

func TestVersion(t *testing.T) {
	got := transcript(app{}, calls("version"))
	if !strings.HasPrefix(got, "$ fastlabel version\n1> fastlabel ") || !strings.HasSuffix(got, ")\nexit 0\n\n") {
		t.Error(got)
	}
}

// What was to be data and did not get out is a failure, and hides no worse.
func TestStdoutBroken(t *testing.T) {
	for _, c := range []struct {
		args  string
		code  int
		quiet bool // nothing was to go there
	}{
		{"--json /done", exit.Failed, false},
		{"-v /changes", exit.Failed, false},
		{"/done", exit.Done, true},
		{"-n /changes", exit.Differs, true},
		{"probe /right", exit.Failed, false},
		{"verify /right", exit.Failed, false},
		{"verify -q /differs", exit.Differs, true},
		{"version", exit.Failed, false},
		{"--help", exit.Failed, false},
		{"completion bash", exit.Failed, false},
		{"--json --timeout 1ns /deadline", exit.TimedOut, false},
	} {
		var err bytes.Buffer
		broken := writerFunc(func([]byte) (int, error) { return 0, errors.New("broken pipe") })
		code := fake().run(t.Context(), nil, broken, &err, strings.Fields(c.args))
		if code != c.code {
			t.Errorf("%s: exit %d, not %d", c.args, code, c.code)
		}
		if said := strings.Contains(err.String(), "fastlabel: writing to standard output: broken pipe\n"); said == c.quiet {
			t.Errorf("%s: stderr is %q", c.args, err.String())
		}
	}
}
