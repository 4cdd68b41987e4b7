// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// terminal is a shell in a window of a tmux server of its own.
type terminal struct {
	t      *testing.T
	socket string
}

const prompt = "$ "

// newTerminal starts a shell in dir, with the programs of bin before others.
func newTerminal(t *testing.T, dir, bin string, columns, rows int) *terminal {
	t.Helper()
	// A socket's name may have 107 bytes.
	home, err := os.MkdirTemp("/tmp", "fastlabel-tmux-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(home) })
	w := &terminal{t: t, socket: filepath.Join(home, "tmux")}
	shell := fmt.Sprintf("exec env -i PATH=%s:$PATH HOME=%s TERM=$TERM LANG=C.UTF-8 PS1='%s' bash --norc --noprofile -i", bin, home, prompt)
	w.tmux("-f", "/dev/null", "-u", "new-session", "-d", "-s", "fastlabel", "-c", dir, "-x", fmt.Sprint(columns), "-y", fmt.Sprint(rows), shell)
	t.Cleanup(func() { w.tmux("kill-server") })
	w.until(`(?m)^\$ *$`)
	return w
}

func (w *terminal) tmux(args ...string) string {
	w.t.Helper()
	cmd := exec.Command("tmux", append([]string{"-S", w.socket}, args...)...)
	cmd.Env = append(os.Environ(), "LANG=C.UTF-8")
	out, err := cmd.CombinedOutput()
	if err != nil {
		w.t.Fatalf("%v: %v: %s", cmd.Args, err, out)
	}
	return string(out)
}

// text types, and enter ends the line.
func (w *terminal) text(line string) {
	w.t.Helper()
	w.tmux("send-keys", "-l", "--", line)
}

func (w *terminal) enter() {
	w.t.Helper()
	w.tmux("send-keys", "Enter")
}

// command types a line and waits until its output matches; nothing of what was
// on the screen before is left there.
func (w *terminal) command(line, until string) {
	w.t.Helper()
	w.clear()
	w.text(line)
	w.enter()
	w.until(until)
}

// clear empties the screen, with what was scrolled out of it.
func (w *terminal) clear() {
	w.t.Helper()
	w.tmux("send-keys", "C-l")
	w.until(`\A\$ *\s*\z`)
	w.tmux("clear-history")
}

// ended is how a screen ends when the shell waits for the next line.
const ended = `(?m)^\$ *\s*\z`

func isEnded(screen string) bool { return regexp.MustCompile(ended).MatchString(screen) }

// until waits until the screen matches: two minutes, for a machine may be busy.
func (w *terminal) until(pattern string) {
	w.t.Helper()
	want := regexp.MustCompile(pattern)
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); {
		if want.MatchString(w.joined()) {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	w.t.Fatalf("nothing like %s on the screen:\n%s", pattern, w.screen())
}

// resize makes the window so wide.
func (w *terminal) resize(columns int) {
	w.t.Helper()
	w.tmux("resize-window", "-x", fmt.Sprint(columns))
}

// screen is what is to be seen, line by line as they are broken.
func (w *terminal) screen() string { w.t.Helper(); return trimmed(w.tmux("capture-pane", "-p")) }

// coloured is the screen with the sequences for its colours.
func (w *terminal) coloured() string {
	w.t.Helper()
	return trimmed(w.tmux("capture-pane", "-p", "-e"))
}

// joined is the screen with broken lines put together again.
func (w *terminal) joined() string { w.t.Helper(); return trimmed(w.tmux("capture-pane", "-p", "-J")) }

// trimmed is without what is blank at the ends of lines, and below the last.
func trimmed(screen string) string {
	var lines []string
	for line := range strings.Lines(screen) {
		lines = append(lines, strings.TrimRight(line, " \n"))
	}
	return strings.TrimRight(strings.Join(lines, "\n"), "\n") + "\n"
}
