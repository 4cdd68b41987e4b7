// SPDX-License-Identifier: Apache-2.0

// Pictures draws each .txt file of docs/pictures as the SVG beside it: make pictures.
//
// The first line of a file is the title, the second describes the picture to those who do not
// see it. The rest is the picture, a cell for each character: box characters are lines, arrow
// heads are triangles, ● ○ ◆ ✗ are drawn, «text» is bold. terminal.txt is a recording, which
// moves: see terminal.
package main

import (
	"fmt"
	"html"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

const (
	wide, high = 9, 20 // of a cell
	size       = 15    // of the font: 0.6 of it is a cell's width
	columns    = 56    // of the terminal
)

// style is for light screens, and then for dark ones. Converters that know no media queries
// draw the light picture.
const style = `<style>
text { font: %dpx ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace; fill: #1f2328; white-space: pre }
.bold { font-weight: bold }
.paper { fill: #fff; stroke: #d1d9e0 }
.box { fill: #eef4fb }
.line, .dash, .old { fill: none; stroke: #59636e; stroke-width: 1.5 }
.dash { stroke-dasharray: 4 4 }
.head { fill: #59636e }
.new { fill: #1a7f37 }
.seal { fill: #bf8700 }
.kill { fill: none; stroke: #cf222e; stroke-width: 3 }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3 }
.paper { fill: #0d1117; stroke: #3d444d }
.box { fill: #182536 }
.line, .dash, .old { stroke: #9198a1 }
.head { fill: #9198a1 }
.new { fill: #3fb950 }
.seal { fill: #e3b341 }
.kill { stroke: #f85149 }
}
%s</style>
`

// reach says towards which sides a line leads from the middle of its cell.
var reach = map[rune]string{
	'─': "we", '│': "ns", '├': "nse", '┤': "nsw", '┬': "wes", '┴': "wen", '┼': "nswe",
	'┌': "es", '┐': "ws", '└': "en", '┘': "wn", '▶': "w", '◀': "e", '▼': "n", '▲': "s",
}

// shapes are drawn around the middle of a cell, which is 0 0.
var shapes = map[rune]string{
	'▶': `<path class="head" d="M-4-5L5 0L-4 5Z"/>`,
	'◀': `<path class="head" d="M4-5L-5 0L4 5Z"/>`,
	'▼': `<path class="head" d="M-5-4L0 6L5-4Z"/>`,
	'▲': `<path class="head" d="M-5 4L0-6L5 4Z"/>`,
	'●': `<circle class="new" r="5.5"/>`,
	'○': `<circle class="old" r="5"/>`,
	'◆': `<path class="seal" d="M0-7.5L7 0L0 7.5L-7 0Z"/>`,
	'✗': `<path class="kill" d="M-6-6L6 6M-6 6L6-6"/>`,
	'┆': `<path class="dash" d="M0-10V10"/>`,
}

func main() {
	files, err := filepath.Glob("docs/pictures/*.txt")
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("no docs/pictures/*.txt here: run make pictures")
	}
	for _, file := range files {
		var text []byte
		if text, err = os.ReadFile(file); err != nil {
			break
		}
		if err = os.WriteFile(strings.TrimSuffix(file, "txt")+"svg", []byte(picture(file, string(text))), 0o644); err != nil {
			break
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "pictures:", err)
		os.Exit(1)
	}
}

// picture returns the SVG of a file's text.
func picture(file, text string) string {
	title, rest, _ := strings.Cut(text, "\n")
	about, rest, _ := strings.Cut(rest, "\n")
	lines := strings.Split(strings.Trim(rest, "\n"), "\n")
	body, css := "", ""
	if filepath.Base(file) == "terminal.txt" {
		body, css, lines = terminal(lines)
	} else {
		body = drawing(lines)
	}
	most := 0
	for _, l := range lines {
		most = max(most, len([]rune(l)))
	}
	w, h := (most+2)*wide, (len(lines)+1)*high
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" aria-labelledby="title about">`+"\n", w, h, w, h) +
		fmt.Sprintf("<title id=\"title\">%s</title>\n<desc id=\"about\">%s</desc>\n", html.EscapeString(title), html.EscapeString(about)) +
		fmt.Sprintf(style, size, css) +
		fmt.Sprintf(`<rect class="paper" x=".5" y=".5" width="%d" height="%d" rx="8"/>`+"\n", w-1, h-1) +
		fmt.Sprintf("<g transform=\"translate(%d %d)\">\n%s</g>\n</svg>\n", wide, high/2, body)
}

// drawing returns the shapes of lines, in cells.
func drawing(lines []string) string {
	var grid [][]rune
	for _, l := range lines {
		grid = append(grid, []rune(l))
	}
	at := func(x, y int) rune {
		if y < 0 || y >= len(grid) || x < 0 || x >= len(grid[y]) {
			return ' '
		}
		return grid[y][x]
	}
	var boxes, strokes, rest strings.Builder
	for y, row := range grid {
		for x, c := range row {
			if c == '┌' {
				right, down := x, y
				for right++; strings.Contains(reach[at(right, y)], "w") && at(right, y) != '┐'; right++ {
				}
				for down++; strings.Contains(reach[at(x, down)], "n") && at(x, down) != '└'; down++ {
				}
				if at(right, y) == '┐' && at(x, down) == '└' && at(right, down) == '┘' {
					fmt.Fprintf(&boxes, `<rect class="box" x="%g" y="%d" width="%d" height="%d"/>`+"\n",
						(float64(x)+.5)*wide, y*high+high/2, (right-x)*wide, (down-y)*high)
				}
			}
			if shape := shapes[c]; shape != "" {
				fmt.Fprintf(&rest, `<g transform="translate(%g %d)">%s</g>`+"\n", (float64(x)+.5)*wide, y*high+high/2, shape)
			}
			// A line that leads from cell to cell is drawn as one.
			for _, way := range []struct {
				from, to string
				dx, dy   int
			}{{"w", "e", 1, 0}, {"n", "s", 0, 1}} {
				leads := func(x, y int, side string) bool { return strings.Contains(reach[at(x, y)], side) }
				begins := leads(x, y, way.from) && !leads(x-way.dx, y-way.dy, way.to)
				if !begins && (leads(x, y, way.from) || !leads(x, y, way.to)) {
					continue
				}
				// point returns the middle of a cell, or of the side where the line leaves it.
				point := func(x, y, half int) string {
					return fmt.Sprintf("%g %d", (float64(x)+.5+float64(half*way.dx)/2)*wide, y*high+high/2+half*way.dy*high/2)
				}
				tx, ty, half := x, y, 0
				for leads(tx, ty, way.to) && leads(tx+way.dx, ty+way.dy, way.from) {
					tx, ty = tx+way.dx, ty+way.dy
				}
				if leads(tx, ty, way.to) {
					half = 1
				}
				if begins {
					strokes.WriteString("M" + point(x, y, -1))
				} else {
					strokes.WriteString("M" + point(x, y, 0))
				}
				strokes.WriteString("L" + point(tx, ty, half))
			}
		}
		rest.WriteString(texts(string(row), y))
	}
	return boxes.String() + `<path class="line" stroke-linecap="square" d="` + strokes.String() + "\"/>\n" + rest.String()
}

var words = regexp.MustCompile(`«[^»]*»|[^\s«»]+( [^\s«»]+)*`)

// texts returns the words of a line, each stretch of them in its cell.
func texts(line string, y int) string {
	drawn := strings.Map(func(c rune) rune {
		if _, is := reach[c]; is || shapes[c] != "" {
			return ' '
		}
		return c
	}, line)
	var out strings.Builder
	for _, m := range words.FindAllStringIndex(drawn, -1) {
		word, class := drawn[m[0]:m[1]], ""
		x := len([]rune(drawn[:m[0]]))
		if strings.HasPrefix(word, "«") {
			word, class = strings.Trim(word, "«»"), ` class="bold"`
			x++
		}
		fmt.Fprintf(&out, `<text%s x="%d" y="%d" textLength="%d" xml:space="preserve">%s</text>`+"\n",
			class, x*wide, y*high+15, len([]rune(word))*wide, html.EscapeString(word))
	}
	return out.String()
}

// terminal returns what a terminal showed, as frames of an animation, its style, and the lines of
// the last frame. A line "$ …" was typed, "~ …" is progress, which the next line replaces, others
// were printed. Where nothing moves, the last frame stands.
func terminal(lines []string) (body, css string, last []string) {
	type frame struct {
		lines   []string
		seconds float64
	}
	var frames []frame
	var shown []string
	for _, l := range lines {
		if progress, is := strings.CutPrefix(l, "~ "); is {
			frames = append(frames, frame{append(slices.Clone(shown), progress), .5})
			continue
		}
		for ; len(l) > columns; l = l[columns:] {
			shown = append(shown, l[:columns])
		}
		shown = append(shown, l)
		frames = append(frames, frame{slices.Clone(shown), 1.5})
	}
	n := len(frames) - 1
	frames[n].seconds = 5
	var total, from float64
	for _, f := range frames {
		total += f.seconds
	}
	var out, style strings.Builder
	for i, f := range frames {
		rest := "hidden"
		if i == n {
			rest = "visible"
		}
		fmt.Fprintf(&style, "#f%d { visibility: %s; animation: k%d %gs step-end infinite }\n@keyframes k%d { 0%% { visibility: hidden } %.2f%% { visibility: visible } %.2f%% { visibility: %s } }\n",
			i, rest, i, total, i, from/total*100, (from+f.seconds)/total*100, rest)
		from += f.seconds
		fmt.Fprintf(&out, "<g id=\"f%d\">\n", i)
		for y, l := range f.lines {
			if command, is := strings.CutPrefix(l, "$ "); is {
				l = "$«" + command + "»"
			}
			out.WriteString(texts(l, y))
		}
		out.WriteString("</g>\n")
	}
	fmt.Fprintf(&style, "@media (prefers-reduced-motion: reduce) { g[id] { animation: none !important } }\n")
	return out.String(), style.String(), frames[n].lines
}
