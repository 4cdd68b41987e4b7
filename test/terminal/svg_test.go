// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"encoding/xml"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// frame is a screen, as tmux gives it with -e, and for how long it is shown.
type frame struct {
	screen  string
	seconds float64
}

// A character of a font whose characters are all as wide takes 0.6 of its size.
const (
	fontSize   = 14
	charWidth  = 0.6 * fontSize
	lineHeight = 18
	margin     = 12
)

// colours are those of SGR 30 to 37, on a dark ground.
var colours = []string{"#6e7681", "#ff7b72", "#7ee787", "#e3b341", "#79c0ff", "#d2a8ff", "#76e3ea", "#e6edf3"}

// svg is the frames one after the other, again and again. What shows no moving
// picture shows the last. The same frames give the same picture.
func svg(frames []frame, columns, rows int, title string) (string, error) {
	width, height := float64(columns)*charWidth+2*margin, rows*lineHeight+2*margin
	total := 0.0
	for _, f := range frames {
		total += f.seconds
	}
	var b strings.Builder
	fmt.Fprintf(&b, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %g %d\" width=\"%g\" height=\"%d\" role=\"img\">\n", width, height, width, height)
	fmt.Fprintf(&b, "<title>%s</title>\n<style>\n", escaped(title))
	fmt.Fprintf(&b, "text { font: %dpx ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace; fill: #e6edf3; white-space: pre }\n.b { font-weight: bold }\n", fontSize)
	at := 0.0
	for i, f := range frames {
		from, to := 100*at/total, 100*(at+f.seconds)/total
		at += f.seconds
		hidden := "hidden"
		if i == len(frames)-1 {
			hidden = "visible"
		}
		fmt.Fprintf(&b, "#f%d { visibility: %s; animation: k%d %.2fs step-end infinite }\n", i, hidden, i, total)
		fmt.Fprintf(&b, "@keyframes k%d { 0%% { visibility: %s } ", i, shown(i == 0))
		if i > 0 {
			fmt.Fprintf(&b, "%.3f%% { visibility: visible } ", from)
		}
		if i < len(frames)-1 {
			fmt.Fprintf(&b, "%.3f%% { visibility: hidden } ", to)
		}
		b.WriteString("}\n")
	}
	fmt.Fprintf(&b, "</style>\n<rect width=\"100%%\" height=\"100%%\" rx=\"8\" fill=\"#0d1117\"/>\n")
	for i, f := range frames {
		fmt.Fprintf(&b, "<g id=\"f%d\">\n", i)
		row := 0
		for line := range strings.Lines(f.screen) {
			text, err := spans(strings.TrimSuffix(line, "\n"))
			if err != nil {
				return "", err
			}
			if text != "" {
				fmt.Fprintf(&b, "<text x=\"%d\" y=\"%d\" xml:space=\"preserve\">%s</text>\n", margin, margin+row*lineHeight+fontSize, text)
			}
			row++
		}
		if row > rows {
			return "", fmt.Errorf("frame %d has %d lines of %d", i, row, rows)
		}
		b.WriteString("</g>\n")
	}
	b.WriteString("</svg>\n")
	return b.String(), nil
}

func shown(yes bool) string {
	if yes {
		return "visible"
	}
	return "hidden"
}

// spans is a line with its colours. It knows SGR 0, 1, 22, 30 to 37 and 39 (ECMA-48);
// anything else is an error.
func spans(line string) (string, error) {
	sequence := regexp.MustCompile(`^\x1b\[([\d;]*)m`)
	var b strings.Builder
	colour, bold, open := "", false, false
	for line != "" {
		if m := sequence.FindStringSubmatch(line); m != nil {
			line = line[len(m[0]):]
			for code := range strings.SplitSeq(m[1], ";") {
				n, err := strconv.Atoi("0" + code)
				switch {
				case err != nil:
					return "", err
				case n == 0:
					colour, bold = "", false
				case n == 1, n == 22:
					bold = n == 1
				case n == 39:
					colour = ""
				case n >= 30 && n < 38:
					colour = colours[n-30]
				default:
					return "", fmt.Errorf("SGR %d is not known", n)
				}
			}
			continue
		}
		text, _, _ := strings.Cut(line[1:], "\x1b")
		text = line[:1+len(text)]
		line = line[len(text):]
		if strings.ContainsRune(text, '\x1b') {
			return "", fmt.Errorf("a sequence that is not known: %q", text)
		}
		if open = colour != "" || bold; open {
			b.WriteString("<tspan")
			if bold {
				b.WriteString(` class="b"`)
			}
			if colour != "" {
				fmt.Fprintf(&b, ` fill="%s"`, colour)
			}
			b.WriteString(">")
		}
		b.WriteString(escaped(text))
		if open {
			b.WriteString("</tspan>")
		}
	}
	return b.String(), nil
}

func escaped(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // a Builder takes all
	return b.String()
}

func TestSVG(t *testing.T) {
	frames := []frame{{"\x1b[1;32m$ \x1b[0mls <&>\n\n\x1b[31mred\x1b[39m plain\n", 1}, {"last\n", 3}}
	got, err := svg(frames, 20, 3, "a & b")
	if err != nil {
		t.Fatal(err)
	}
	again, _ := svg(frames, 20, 3, "a & b")
	if got != again {
		t.Error("the same frames, another picture")
	}
	if err := xml.Unmarshal([]byte(got), new(struct{ XMLName xml.Name })); err != nil {
		t.Errorf("%v in\n%s", err, got)
	}
	for _, want := range []string{
		`<title>a &amp; b</title>`,
		`<text x="12" y="26" xml:space="preserve"><tspan class="b" fill="#7ee787">$ </tspan>ls &lt;&amp;&gt;</text>`,
		`<text x="12" y="62" xml:space="preserve"><tspan fill="#ff7b72">red</tspan> plain</text>`,
		`#f0 { visibility: hidden; animation: k0 4.00s step-end infinite }`,
		`@keyframes k0 { 0% { visibility: visible } 25.000% { visibility: hidden } }`,
		`#f1 { visibility: visible; animation: k1 4.00s step-end infinite }`,
		`@keyframes k1 { 0% { visibility: hidden } 25.000% { visibility: visible } }`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in\n%s", want, got)
		}
	}
	for _, bad := range []string{"\x1b[2J", "\x1b[48;5;1mx", "\x1b"} {
		if s, err := svg([]frame{{bad + "\n", 1}}, 9, 1, ""); err == nil {
			t.Errorf("%q: no error, but\n%s", bad, s)
		}
	}
	if _, err := svg([]frame{{"1\n2\n", 1}}, 9, 1, ""); err == nil {
		t.Error("two lines on one row")
	}
}
