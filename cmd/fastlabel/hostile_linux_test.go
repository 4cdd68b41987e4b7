// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/exit"
	"github.com/fastlabel/fastlabel/relabel"
	"github.com/fastlabel/fastlabel/test/treetest"
)

// forged are bytes that a terminal, a log or a reader of lines must not get raw: a
// line of its own, escapes of seven and of eight bits, marks of direction, what is no
// UTF-8, quotes.
const forged = "\nFORGED: \x1b]0;x\a\x1b[2J\r\u009b31m\u202e\u2028\u0085\x7f\b\xff\xc0\x80\xed\xa0\x80'\"\\$(x)`\t"

// tells is an engine whose every word is hostile.
func tells(ctx context.Context, root, _ string, o *relabel.Options, check bool) (relabel.Report, error) {
	err := &fs.PathError{Op: "op" + forged, Path: root + "/" + forged, Err: errors.New("text" + forged)}
	call := relabel.HungCall{Call: "call" + forged, Path: root + forged}
	begins(o, func() relabel.State {
		return relabel.State{Counts: relabel.Counts{Seen: 1}, Path: root + forged, Call: "call" + forged}
	})
	o.Trace.Failure(err)
	o.Trace.Failure(errors.New(forged))
	o.Trace.Skip(root+forged, "reason"+forged)
	o.Trace.Note("note" + forged)
	o.Trace.Wait()
	if o.Trace.Stall != nil {
		o.Trace.Stall([]relabel.HungCall{call})
	}
	if o.Trace.Change != nil {
		o.Trace.Change(root+"/"+forged, "from"+forged, "to")
		o.Trace.Change(root+"/"+forged, "", "to")
	}
	rep := relabel.Report{Root: root, Counts: relabel.Counts{Seen: 3, Written: 1, Failed: 2}, Way: "way" + forged, Interrupted: "label" + forged, Notes: []string{forged}}
	if strings.HasSuffix(root, "/hung") {
		return rep, &relabel.HungError{Calls: []relabel.HungCall{call}, Cause: context.Canceled}
	}
	return rep, errors.Join(err, errors.New("joined"+forged))
}

func hostileApp() app {
	fails := func(path string) error {
		if strings.Contains(path, "fails") {
			return &fs.PathError{Op: forged, Path: path, Err: errors.New(forged)}
		}
		return nil
	}
	return app{
		name:  "/bin/" + forged,
		tree:  tells,
		state: fakeState,
		inspect: func(root, _ string, _ relabel.Skip) (relabel.RootState, error) {
			return relabel.RootState{
				Labelled: strings.Contains(root, "right"), Label: "has" + forged,
			}, fails(root)
		},
	}
}

// TestHostileBytes: of no name, argument, field or text does a raw byte reach what is
// printed, and none can print a line of its own.
func TestHostileBytes(t *testing.T) {
	treetest.Need(t, "plain")
	root := "r" + strings.ReplaceAll(forged, "/", "")
	var all [][]string
	commands := slices.Concat([]*cobra.Command{noTree()}, noTree().Commands())
	roots := [][]string{{root}, {root + "/hung"}, {root + "right"}, {root + "fails"}, {"missing" + forged}, {forged}, {root, root + "/"}}
	ways := [][]string{{}, {"-v"}, {"--json", "-v"}, {"-p"}, {"-q"}}
	for _, c := range commands {
		command := strings.Fields(nameOf(c))
		if slices.Contains([]string{"hook", "completion", "version", "help"}, c.Name()) {
			all = append(all, append(command, forged))
			continue
		}
		for _, r := range roots {
			for _, way := range ways {
				all = append(all, slices.Concat(command, way, []string{"--"}, r))
			}
		}
	}
	for _, c := range commands {
		command := strings.Fields(nameOf(c))
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if f.NoOptDefVal == "" {
				for _, value := range []string{forged, "a:b:c:" + forged, "d" + forged, "list"} {
					all = append(all, slices.Concat(command, []string{"--" + f.Name + "=" + value, root}))
				}
			}
			all = append(all, []string{"--" + f.Name + forged}, []string{"-" + f.Shorthand + forged})
		})
	}
	all = append(all, []string{forged}, []string{"-" + forged}, []string{"--" + forged}, []string{"--null", "-f", "list"}, []string{"-0flist", "--json"})

	over, cancel := context.WithCancelCause(t.Context())
	cancel(exit.Signal{Sig: syscall.SIGTERM})
	for name, a := range map[string]app{"engine": hostileApp(), "library": real()} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			for _, name := range []string{"d" + forged, "list"} {
				treetest.Must(t, os.WriteFile(name, []byte("a"+forged+"\x00b\n"), 0o600))
			}
			treetest.Must(t, os.MkdirAll(root+"/hung", 0o700))
			setLabel(t, root, "a:b:c"+forged)
			for _, ctx := range []context.Context{t.Context(), over} {
				for _, args := range all {
					if name == "library" && len(args) > 0 && args[0] == "hook" {
						continue
					}
					hostileCall(ctx, t, a, args)
				}
			}
		})
	}
}

// hostileCall holds all that one call prints.
func hostileCall(ctx context.Context, t *testing.T, a app, args []string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code := a.run(ctx, strings.NewReader("stdin"+forged), &stdout, &stderr, args)
	harmless(t, args, stderr.String())
	if slices.Contains(args, "--json") && code != exit.Usage {
		harmlessJSON(t, args, stdout.String())
	} else {
		harmless(t, args, stdout.String())
	}
}

// TestHostileHook is the same for all that a runtime hands to the hook.
func TestHostileHook(t *testing.T) {
	for _, asked := range []string{"relabel=true", "relabel=/a" + forged + ",/b", "relabel=" + forged, "relabel=/b|label=" + forged, "relabel=/b|skip=" + forged, "relabel=/b|shared=" + forged} {
		for _, field := range []string{"id", "bundle", "status", "ociVersion", "mountLabel", "none"} {
			x := newContainer(t, strings.Split(asked, "|")...)
			x.bind("/a"+forged, "v"+forged)
			x.bind("/b", x.dir+"/gone"+forged)
			x.mounts = append(x.mounts, mount("/b", "type"+forged, ""))
			switch field {
			case "mountLabel":
				x.config["linux"] = map[string]any{"mountLabel": forged}
			case "none":
			default:
				x.state[field] = "/x" + forged
			}
			for _, args := range [][]string{{}, {"-v"}} {
				_, said := x.run(t.Context(), hostileApp(), args...)
				harmless(t, []string{asked, field}, said)
			}
		}
	}
	_, said := callHook(t.Context(), t, hostileApp(), strings.NewReader(forged))
	harmless(t, []string{"stdin"}, said)
}

// harmless holds that text is UTF-8, printable, and has no line that a name made.
func harmless(t *testing.T, args []string, text string) {
	t.Helper()
	for line := range strings.Lines(text) {
		body := strings.TrimSuffix(line, "\n")
		if !utf8.ValidString(body) || strings.ContainsFunc(body, func(r rune) bool { return !unicode.IsPrint(r) }) || strings.HasPrefix(body, "FORGED") {
			t.Fatalf("%q prints %q", args, line)
		}
	}
}

// harmlessJSON holds that each line is an object of printable bytes. That names come back
// exactly is TestJSONExact.
func harmlessJSON(t *testing.T, args []string, text string) {
	t.Helper()
	harmless(t, args, text)
	for line := range strings.Lines(text) {
		if !json.Valid([]byte(line)) {
			t.Fatalf("%q prints %q", args, line)
		}
	}
}
