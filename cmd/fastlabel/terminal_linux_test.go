// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/creack/pty"

	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/exit"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/stream"
	"github.com/fastlabel/fastlabel/test/treetest"
)

// session is the command on a terminal.
type session struct {
	*exec.Cmd
	master *os.File
	mu     sync.Mutex
	text   bytes.Buffer
	closed chan struct{}
}

// onTerminal starts the command, mode as start has it, on a terminal.
func onTerminal(t *testing.T, mode string, columns uint16, args ...string) *session {
	t.Helper()
	return shellOnTerminal(t, mode, columns, `exec "$0" "$@"`, append([]string{os.Args[0]}, args...)...)
}

// shellOnTerminal has bash run a script there.
func shellOnTerminal(t *testing.T, mode string, columns uint16, script string, args ...string) *session {
	t.Helper()
	s := &session{Cmd: exec.Command("bash", append([]string{"--norc", "-c", script}, args...)...), closed: make(chan struct{})}
	s.Env = append(os.Environ(), "FASTLABEL_TEST_AS="+mode, "TERM=xterm")
	var err error
	if s.master, err = pty.StartWithSize(s.Cmd, &pty.Winsize{Rows: 24, Cols: columns}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Process.Kill(); s.master.Close() })
	go func() {
		defer close(s.closed)
		buf := make([]byte, 4096)
		for {
			n, err := s.master.Read(buf)
			s.mu.Lock()
			s.text.Write(buf[:n])
			s.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	return s
}

func (s *session) so(far int) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()[far:]
}

// until waits until what came since matches, and returns how much that is.
func (s *session) until(t *testing.T, since int, pattern string) int {
	t.Helper()
	want := regexp.MustCompile(pattern)
	for end := time.Now().Add(treetest.Patience); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if text := s.so(since); want.MatchString(text) {
			return since + len(text)
		}
	}
	t.Fatalf("no %s in %q", pattern, s.so(since))
	return 0
}

// end waits for the end, and returns what a terminal shows.
func (s *session) end() (*terminal, int) {
	_ = s.Wait()
	<-s.closed
	on := new(terminal)
	on.feed(s.so(0))
	on.lines = slices.DeleteFunc(on.lines, isStall)
	return on, s.ProcessState.ExitCode()
}

// isStall is a line that a busy machine may add.
func isStall(line string) bool { return strings.Contains(line, ": waiting for ") }

// hostileTree makes n files in directories with hostile names, on a filesystem that
// has labels, and where no call waits for a disk.
func hostileTree(t *testing.T, n int) string {
	t.Helper()
	dir := treetest.Fresh(t, "tmpfs")
	ownRuntime(t)
	root := filepath.Join(dir, "v")
	names := []string{"\x1b[31mred", "new\nline", "\u202edrow", "\xff\xfe", strings.Repeat("日本", 30), strings.Repeat("e\u0301", 40)}
	for i := range n {
		sub := filepath.Join(root, names[i%len(names)])
		treetest.Must(t, os.MkdirAll(sub, 0o755))
		treetest.Must(t, os.WriteFile(filepath.Join(sub, fmt.Sprint("f", i)), nil, 0o600))
	}
	return root
}

// By itself a line appears on a terminal, no wider than that is, also when it
// changes, and is gone in the end. No name reaches the terminal raw.
func TestTerminal(t *testing.T) {
	for _, mode := range []string{"real", "apart real"} {
		root := hostileTree(t, 500)
		t.Run(mode, func(t *testing.T) {
			t.Parallel() // it takes five seconds, of which it sleeps most
			s := onTerminal(t, mode, 80, "--max-rate=100", root)
			at := s.until(t, 0, `\d+( entries| of at most .*\)), .*\r`)
			treetest.Must(t, pty.Setsize(s.master, &pty.Winsize{Rows: 24, Cols: 40}))
			at = s.until(t, at, `\r[^\r]*\r[^\r]*\r`) // one may have been under way
			s.until(t, at, `\r[^\r]*\r[^\r]*\r`)
			on, code := s.end()
			if code != exit.Done || len(on.faults) > 0 {
				t.Errorf("%s: exit %d, %q", mode, code, on.faults)
			}
			wide := func(lines []string) (n int) {
				for _, l := range lines {
					n = max(n, columns(l))
				}
				return n
			}
			if text := strings.Join(on.lines, " "); strings.Count(text, "fastlabel: ") != 1 || !regexp.MustCompile(`507 entries, 507 written, 0 failed`).MatchString(text) || len(on.line) > 0 {
				t.Errorf("%s: %q and %q stay", mode, on.lines, string(on.line))
			}
			for _, l := range on.drawn {
				if !regexp.MustCompile(`^([\d,]+( of at most [\d,]+ \(\d+%\)| entries), \d+:\d\d elapsed|\d+%)(, |$)`).MatchString(l) || columns(l) > 79 {
					t.Errorf("%s: %q", mode, l)
				}
			}
			var after terminal
			after.feed(s.so(at))
			if wide(after.drawn) > 39 || wide(on.drawn) <= 39 {
				t.Errorf("%s: %d columns, and then %d", mode, wide(on.drawn), wide(after.drawn))
			}
		})
	}
}

// Nothing is drawn where nobody wants it: with -q, with --json, on a terminal that cannot. There,
// and where it is asked for, whole lines come.
func TestTerminalPlain(t *testing.T) {
	for _, c := range []struct{ env, args, says string }{
		{"", "-q", `^$`}, {"", "--json", `^{.*"message_type":"summary".*}\r\n$`}, {"TERM=", "", `elapsed`}, {"TERM=dumb", "", `elapsed`}, {"TERM=dumb", "-p", `elapsed`}, {"", "--progress=plain", `elapsed`},
	} {
		root := hostileTree(t, 700)
		t.Run(c.env+c.args, func(t *testing.T) {
			t.Parallel() // it sleeps most of its time
			s := shellOnTerminal(t, "real", 80, c.env+` "$0" --max-rate=100 `+c.args+` "$1"`, os.Args[0], root)
			on, _ := s.end()
			long := slices.ContainsFunc(on.lines, func(l string) bool {
				return strings.Contains(l, "elapsed") && columns(l) > len("fastlabel: ")+len(root)+len(": ")+39
			})
			if !regexp.MustCompile(c.says).MatchString(s.so(0)) || long || len(on.drawn) > 0 || len(on.faults) > 0 {
				t.Errorf("%q, drawn %q, %q", on.lines, on.drawn, on.faults)
			}
		})
	}
}

// Lines for people, on both streams, come whole between drawings.
func TestTerminalLines(t *testing.T) {
	for _, mode := range []string{"real", "apart real"} {
		root := hostileTree(t, 400)
		t.Run(mode, func(t *testing.T) {
			t.Parallel() // it sleeps most of its time
			s := onTerminal(t, mode, 80, "-v", "-p", "--max-rate=200", "-l=s0:c1", "-e", filepath.Join(root, "\xff\xfe"), root)
			s.until(t, 0, `\d+( entries| of at most .*\)), .*\r`)
			on, code := s.end()
			if code != exit.Done || len(on.faults) > 0 || len(on.drawn) == 0 {
				t.Errorf("%s: exit %d, %q, %d drawn", mode, code, on.faults, len(on.drawn))
			}
			whole := regexp.MustCompile(`^(relabelled ".*" (from \S+ )?to \S+|fastlabel: ".*": skipped: .*|fastlabel: \S+: \d+( entries| of at most .*\)), .*|  \S.*)$`)
			for _, l := range on.lines {
				if !whole.MatchString(l) {
					t.Errorf("%s: torn: %q", mode, l)
				}
			}
		})
	}
}

// A run that is stopped says how far it came and how to go on, and that goes on.
func TestStop(t *testing.T) {
	root := hostileTree(t, 3000)
	link := filepath.Join(t.TempDir(), "it's here")
	treetest.Must(t, os.Symlink(root, link))
	other := t.TempDir()
	bin := filepath.Join(t.TempDir(), "fast label")
	treetest.Must(t, os.Symlink(os.Args[0], bin))
	for i, c := range []struct {
		sig  syscall.Signal
		code int
	}{{syscall.SIGINT, exit.Interrupted}, {syscall.SIGTERM, exit.Terminated}} {
		cmd := exec.Command(bin, "--max-rate=100", fmt.Sprint("-l=s0:c", i), "-T2", link+"/", other)
		cmd.Env = append(os.Environ(), "FASTLABEL_TEST_AS=real")
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		treetest.Must(t, cmd.Start())
		treetest.Wait(t, "the first label", func() bool { // it takes half a minute
			labels := treetest.Read(t, root)
			delete(labels, ".") // which may have the seal
			return slices.ContainsFunc(slices.Collect(maps.Values(labels)), func(l string) bool {
				return strings.HasSuffix(l, fmt.Sprint("s0:c", i))
			})
		})
		treetest.Must(t, cmd.Process.Signal(c.sig))
		ended(t, cmd, c.code)
		lines := slices.DeleteFunc(strings.Split(strings.TrimSpace(stderr.String()), "\n"), isStall)
		want := regexp.MustCompile(`: incomplete \(interrupted by \w+\), [\d,]+ entries, [\d,]+ written, 1 skipped, 0 failed, .* s(, [\d,]+/s)?; label \S+$`)
		if len(lines) != 3 || !want.MatchString(lines[0]) || !strings.HasPrefix(lines[1], "fastlabel: "+other+": not begun") || !strings.HasPrefix(lines[2], "fastlabel: not done; to resume: ") {
			t.Fatalf("%v: %s", c.sig, stderr.String())
		}
		// The same, but for what would take half a minute or fail.
		next := strings.TrimSuffix(strings.TrimPrefix(lines[2], "fastlabel: not done; to resume: "), " "+other)
		next = strings.Replace(next, "--max-rate=100", "--json", 1)
		shell := exec.Command("bash", "-c", next)
		shell.Env = cmd.Env
		out, err := shell.Output()
		if err != nil || !strings.Contains(string(out), `"seen":3007,`) || !strings.Contains(string(out), `"complete":true`) {
			t.Errorf("%s\n%s, %v", next, out, err)
		}
	}
}

// ^Z leaves no line behind, and the time in which the run was stopped is none of its own.
func TestSuspend(t *testing.T) {
	treetest.Need(t, "bash")
	for _, mode := range []string{"real", "apart real"} {
		root := hostileTree(t, 300)
		t.Run(mode, func(t *testing.T) {
			t.Parallel() // it sleeps most of its time
			began := time.Now()
			// Without a shell that waits for it, a process is not stopped by ^Z.
			s := shellOnTerminal(t, mode, 80, `set -m; "$0" -p --max-rate=100 "$1"; echo stopped; sleep 4; fg >/dev/null; echo code $?`, os.Args[0], root)
			s.until(t, 0, `elapsed`)
			if _, err := s.master.WriteString("\x1a"); err != nil {
				t.Fatal(err)
			}
			on, _ := s.end()
			wall := time.Since(began).Seconds()
			at := slices.Index(on.lines, "stopped")
			if at < 0 || !slices.Contains(on.lines, "code 0") || len(on.line) > 0 {
				t.Fatalf("%q, %q", on.lines, string(on.line))
			}
			for _, l := range on.lines {
				if strings.Contains(l, "elapsed") {
					t.Errorf("it stays: %q", l)
				}
			}
			took := regexp.MustCompile(`(?s)307 entries.*?(\d+\.\d) s`).FindStringSubmatch(strings.Join(on.lines, "\n"))
			if took == nil {
				t.Fatal(on.lines)
			}
			// It was stopped for 4 s, but for what passed since it drew the last time: on a busy machine, long.
			if ran, _ := strconv.ParseFloat(took[1], 64); wall-ran < 1 {
				t.Errorf("%.1f s of %.1f", ran, wall)
			}
		})
	}
}

// terminal plays one: it knows CR, LF and ED, and what else it is sent that is
// not printable is a fault.
type terminal struct {
	lines  []string // that were ended
	line   []rune
	at     int
	faults []string
	drawn  []string // each line as it stood when the cursor went back
}

// columns returns how many columns a line takes where Asian characters take two.
func columns(line string) (n int) {
	for _, r := range line {
		n++
		if r >= 0x1100 {
			n++
		}
	}
	return n
}

func (t *terminal) feed(text string) {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	for text != "" {
		if rest, ok := strings.CutPrefix(text, "\x1b[J"); ok {
			t.line, text = t.line[:t.at], rest
			continue
		}
		r, size := utf8.DecodeRuneInString(text)
		text = text[size:]
		switch {
		case r == '\r':
			if t.at > 0 {
				t.drawn = append(t.drawn, string(t.line))
			}
			t.at = 0
		case r == '\n':
			t.lines, t.line, t.at = append(t.lines, string(t.line)), nil, 0
		case size == 1 && r == unicode.ReplacementChar, !unicode.IsPrint(r):
			t.faults = append(t.faults, fmt.Sprintf("%q", r))
		default:
			t.line = append(t.line[:t.at], append([]rune{r}, t.line[min(t.at+1, len(t.line)):]...)...)
			t.at++
		}
	}
}

// No line is torn by writers while it is drawn, and it is gone in the end. The
// control draws past the screen.
func TestTornLines(t *testing.T) {
	for _, control := range []bool{false, true} {
		var b bytes.Buffer
		s := &stream.Screen{W: &b}
		if control {
			s.W = writerFunc(func(p []byte) (int, error) { // nothing is wiped
				return b.WriteString(strings.ReplaceAll(string(p), "\r\x1b[J", ""))
			})
		}
		const each = 200
		var all sync.WaitGroup
		for name, w := range map[string]io.Writer{"stderr": s, "stdout": s.Beside(&b)} {
			all.Go(func() {
				for i := range each {
					fmt.Fprintf(w, "%s %d\n", name, i)
				}
			})
		}
		all.Go(func() {
			for i := range each {
				s.Draw(fmt.Sprint("drawn ", i, strings.Repeat("x", i%50)))
			}
		})
		all.Wait()
		s.Draw("last")
		fmt.Fprintln(s, "stderr end")
		s.Draw("again")
		s.Draw("")
		var on terminal
		on.feed(b.String())
		next := map[string]int{}
		torn := 0
		for _, l := range on.lines {
			name, n, _ := strings.Cut(l, " ")
			if n != "end" && n != fmt.Sprint(next[name]) {
				torn++
			}
			next[name]++
		}
		if bad := torn > 0 || len(on.lines) != 2*each+1 || len(on.line) > 0; bad != control {
			t.Errorf("control %t: %d of %d lines are torn, %q is left", control, torn, len(on.lines), string(on.line))
		}
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
