// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/stream"
)

// terminal plays one: it knows CR, LF and ED, and what else it is sent that is
// not printable is a fault.
type terminal struct {
	columns int
	lines   []string // that were ended
	line    []rune
	at      int
	faults  []string
	drawn   []string // each line as it stood when the cursor went back
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
		stdout := s.Beside(&b)
		const each = 200
		var all sync.WaitGroup
		for _, w := range []*struct{ name string }{{"stderr"}, {"stdout"}} {
			all.Go(func() {
				for i := range each {
					if w.name == "stdout" {
						fmt.Fprintf(stdout, "%s %d\n", w.name, i)
					} else {
						fmt.Fprintf(s, "%s %d\n", w.name, i)
					}
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

// What is there already is not written again.
func TestDrawOnce(t *testing.T) {
	var b bytes.Buffer
	s := &stream.Screen{W: &b}
	s.Draw("a")
	n := b.Len()
	s.Draw("a")
	if b.Len() != n {
		t.Errorf("%q", b.String())
	}
	s.Draw("")
	n = b.Len()
	s.Draw("")
	if b.Len() != n {
		t.Errorf("%q", b.String())
	}
}
