// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"log/syslog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/exit"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/oci"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/report"
	"github.com/fastlabel/fastlabel/test/treetest"
)

// Each line goes to the journal as well; one that does not listen holds
// nobody.
func TestHookJournal(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	treetest.Must(t, err)
	defer l.Close()
	lines := func(verbose bool) (*hookLines, *strings.Builder) {
		var stderr strings.Builder
		return &hookLines{stderr: &stderr, journal: &journal{path: path}, verbose: verbose}, &stderr
	}
	x := newContainer(t, "relabel=true")
	x.bind("/v", x.dir+"/gone")
	said, stderr := lines(false)
	h := &hook{app: fake(), settings: &settings{}, lines: said}
	if code := h.run(context.Background(), strings.NewReader(x.write())); code != exit.Failed {
		t.Errorf("exit %d", code)
	}
	buf := make([]byte, 4096)
	n, err := l.Read(buf)
	treetest.Must(t, err)
	const text = "source /v/gone: lstat /v/gone: no such file or directory"
	if got := strings.ReplaceAll(stderr.String(), x.dir, "/v"); got != "fastlabel: container c1: /v: "+text+"\n" {
		t.Error(got)
	}
	line := `{"message_type":"error","container":"c1","destination":"/v","path":"","text":"` + text + `"}`
	if got := strings.ReplaceAll(string(buf[:n]), x.dir, "/v"); !strings.HasPrefix(got, "<27>") || !strings.HasSuffix(got, fmt.Sprintf(" fastlabel[%d]: %s\n", os.Getpid(), line)) {
		t.Errorf("%q, not %q", got, line)
	}

	// Nobody reads: the queue fills, and one line alone is waited for.
	j := &journal{path: path}
	for range 3000 {
		j.write(syslog.LOG_ERR, "full")
	}
	if !j.dead {
		t.Error("a full queue was waited for again and again")
	}
	if _, err := l.Read(buf); err != nil { // there is room again
		t.Fatal(err)
	}
	arrives(t, l, j, "after the full queue")
	// A line that is too long for a datagram is one lost line, and so is what is
	// written while the reader is away.
	j.write(syslog.LOG_ERR, strings.Repeat("x", 4<<20))
	arrives(t, l, j, "after the long line")
	l.Close()
	j.write(syslog.LOG_ERR, "away")
	treetest.Must(t, os.Remove(path))
	if l, err = net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"}); err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	arrives(t, l, j, "after the reader's absence")
}

// arrives has a line written, and reads until that comes.
func arrives(t *testing.T, l *net.UnixConn, j *journal, line string) {
	t.Helper()
	buf := make([]byte, 4096)
	j.dead = false // also by a slow machine
	j.write(syslog.LOG_ERR, line)
	_ = l.SetReadDeadline(time.Now().Add(treetest.Patience))
	for {
		if n, err := l.Read(buf); err != nil || strings.HasSuffix(string(buf[:n]), "]: "+line+"\n") {
			if err != nil {
				t.Errorf("%s does not arrive: %v", line, err)
			}
			return
		}
	}
}

// A pod's author floods no log: by destinations, by mounts, by what fails.
func TestHookFlood(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	treetest.Must(t, err)
	defer l.Close()
	list := func(n int, more string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "/%x,", i)
		}
		return "relabel=" + b.String() + more
	}
	run := func(ctx context.Context, x *container) (code int, lines []string) {
		var stderr strings.Builder
		h := &hook{app: fake(), settings: &settings{verbose: 1}, lines: &hookLines{stderr: &stderr, journal: &journal{path: path}, verbose: true}}
		all := make(chan []string)
		go func() { // a queue has room for ten
			var lines []string
			for buf := make([]byte, 1<<20); ; {
				n, err := l.Read(buf)
				if err != nil || string(buf[:n]) == "over" {
					all <- lines
					return
				}
				lines = append(lines, string(buf[:n]))
			}
		}()
		code = h.run(ctx, strings.NewReader(x.write()))
		over, err := net.Dial("unixgram", path)
		if err == nil {
			_, err = over.Write([]byte("over"))
		}
		treetest.Must(t, err)
		over.Close()
		lines = <-all
		for line := range strings.Lines(stderr.String()) {
			lines = append(lines, line)
		}
		for _, line := range lines {
			if len(line) > 8<<10 {
				t.Errorf("a line of %d bytes", len(line))
			}
		}
		return code, lines
	}
	for _, c := range []struct {
		asked string
		lines int // on stderr and in the journal
		last  string
	}{
		{list(53000, "/x"), 2, ": io.fastlabel.relabel lists more than 256 destinations\n"},
		{list(255, "/"+strings.Repeat("long", 50000)), 2 * maxLines, " container c1: 207 more lines are left out\n"},
		{"relabel=/" + strings.Repeat("\x1b\xff", 40000), 2, "..."},
		{"relabel=/many", 2 * (report.MaxListed + 2), "1,234 failed, 0.010 s; label system_u:object_r:container_file_t:s0:c1,c2\n"},
	} {
		x := newContainer(t, c.asked)
		x.bind("/many", "many")
		code, lines := run(t.Context(), x)
		if code != exit.Failed || len(lines) != c.lines || !strings.HasSuffix(strings.TrimSuffix(" "+lines[len(lines)-1], "\n"), strings.TrimSuffix(c.last, "\n")) {
			t.Errorf("%.40s: exit %d, %d lines, the last is %.200s", c.asked, code, len(lines), lines[len(lines)-1])
		}
	}

	// After the end no mount is gone through.
	ended, cancel := context.WithCancelCause(t.Context())
	cancel(exit.Deadline{After: time.Second})
	h := &hook{app: fake(), settings: &settings{}, lines: &hookLines{stderr: io.Discard, journal: &journal{path: path + "not"}}}
	if volumes, _ := h.choose(ended, []oci.Mount{mount("/m", "bind", "/")}, &oci.Request{Destinations: []string{"/m"}}); volumes != nil {
		t.Errorf("after the end: %v", volumes)
	}
}
