// SPDX-License-Identifier: Apache-2.0

// Package man makes manual pages (man(7)) of what --help shows.
package man

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/spf13/pflag"
)

// Page is one page.
type Page struct {
	Name     string           // fastlabel-probe
	About    string           // a line
	Synopsis []string         // a call each
	Groups   []*pflag.FlagSet // under their names
	Text     []string         // as --help prints it; see Roff
	Example  string           // lines that are indented
	SeeAlso  []string         // pages of section 1
	Version  string
	Date     time.Time
}

// Roff is the page's source. In Text a block of lines that opens with a title and
// a colon, such as "Exit codes:", is a section; lines that are indented stay as they
// are; the others are filled. A blank line ends a paragraph.
func (p Page) Roff() string {
	var b strings.Builder
	fmt.Fprintf(&b, ".\\\" Made of what --help shows.\n.TH %s 1 %s %s %s\n.nh\n",
		strings.ToUpper(escape(p.Name)), p.Date.UTC().Format(time.DateOnly), quoted("fastlabel "+p.Version), quoted("User Commands"))
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n.SH SYNOPSIS\n", escape(p.Name), escape(p.About))
	for i, call := range p.Synopsis {
		if i > 0 {
			b.WriteString(".br\n")
		}
		words := strings.SplitN(call, " [", 2)
		fmt.Fprintf(&b, ".B %s\n", escape(words[0]))
		if len(words) > 1 {
			b.WriteString(escape("["+words[1]) + "\n")
		}
	}
	var sections []string
	b.WriteString(".SH DESCRIPTION\n" + escape(sentence(p.About)) + "\n")
	for _, text := range p.Text {
		for block := range strings.SplitSeq(strings.Trim(text, "\n"), "\n\n") {
			if first, rest, ok := strings.Cut(block, "\n"); ok && title().MatchString(first) {
				name := strings.Replace(strings.TrimSuffix(first, ":"), "Exit codes", "Exit status", 1) // man-pages(7)
				sections = append(sections, ".SH "+strings.ToUpper(escape(name))+"\n"+strings.TrimPrefix(paragraph(rest), ".PP\n"))
				continue
			}
			b.WriteString(paragraph(block))
		}
	}
	if len(p.Groups) > 0 {
		b.WriteString(".SH OPTIONS\n")
	}
	for _, g := range p.Groups {
		fmt.Fprintf(&b, ".SS %s\n", escape(g.Name()))
		g.VisitAll(func(f *pflag.Flag) {
			b.WriteString(".TP\n")
			if f.Shorthand != "" {
				b.WriteString(`\fB\-` + escape(f.Shorthand) + `\fR, `)
			}
			b.WriteString(`\fB\-\-` + escape(f.Name) + `\fR`)
			if arg, _ := pflag.UnquoteUsage(f); arg != "" {
				b.WriteString(` \fI` + escape(arg) + `\fR`)
			}
			b.WriteString("\n" + line(sentence(f.Usage)) + "\n")
		})
	}
	b.WriteString(strings.Join(sections, ""))
	fmt.Fprintf(&b, ".SH EXAMPLES\n%s.SH SEE ALSO\n", strings.TrimPrefix(paragraph(p.Example), ".PP\n"))
	for i, s := range p.SeeAlso {
		end := ","
		if i == len(p.SeeAlso)-1 {
			end = ""
		}
		fmt.Fprintf(&b, ".BR %s (1)%s\n", escape(s), end)
	}
	return b.String()
}

var title = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Z][A-Za-z ]*:$`) })

// paragraph writes lines of one block.
func paragraph(block string) string {
	if block == "" {
		return ""
	}
	var b strings.Builder
	b.WriteString(".PP\n")
	asIs := false
	for l := range strings.SplitSeq(strings.TrimRight(block, "\n"), "\n") {
		if indented := strings.HasPrefix(l, " "); indented != asIs {
			asIs = indented
			b.WriteString(map[bool]string{true: ".nf\n", false: ".fi\n"}[asIs])
		}
		b.WriteString(line(l) + "\n")
	}
	if asIs {
		b.WriteString(".fi\n")
	}
	return b.String()
}

// line is one that roff does not take for a request.
func line(s string) string {
	s = escape(s)
	if strings.HasPrefix(s, ".") || strings.HasPrefix(s, `\(aq`) {
		return `\&` + s
	}
	return s
}

func quoted(s string) string { return `"` + strings.ReplaceAll(escape(s), `"`, `\(dq`) + `"` }

// escape leaves each character what it is: groff makes typographic ones of some.
func escape(s string) string {
	return strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", `\(ga`, "^", `\(ha`, "~", `\(ti`).Replace(s)
}

// sentence makes one of a line of the help.
func sentence(s string) string {
	if s == "" || strings.HasSuffix(s, ".") {
		return s
	}
	end := "."
	if strings.HasSuffix(s, "?") {
		end = ""
	}
	return strings.ToUpper(s[:1]) + s[1:] + end
}
