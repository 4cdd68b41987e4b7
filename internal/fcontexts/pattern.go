// SPDX-License-Identifier: Apache-2.0

package fcontexts

import "strings"

// class is a set of bytes.
type class [4]uint64

func (c *class) add(b byte)      { c[b>>6] |= 1 << (b & 63) }
func (c *class) has(b byte) bool { return c[b>>6]>>(b&63)&1 != 0 }

func (c *class) merge(d class) {
	for i := range c {
		c[i] |= d[i]
	}
}

func (c class) inverted() class { return class{^c[0], ^c[1], ^c[2], ^c[3]} }

func classOf(bytes string) (c class) {
	for i := range len(bytes) {
		c.add(bytes[i])
	}
	return c
}

const (
	digits = "0123456789"
	meta   = ".^$?*+|[({])}"
	// unescaped is what a backslash before it leaves as it is, to libselinux.
	unescaped = meta + "-_,"
	// mostSteps is how long an expression may be with all that {n,m} repeats.
	mostSteps = 10_000
)

var (
	anyByte = class{}.inverted()
	escapes = map[byte]class{
		'd': classOf(digits),
		'w': classOf(digits + "_abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"),
		's': classOf(" \t\n\v\f\r"),
	}
)

// plain returns the path that a pattern stands for if it has no meta character.
func plain(pattern string) (string, bool) {
	if !strings.ContainsAny(pattern, meta+`\`) {
		return pattern, true
	}
	var b strings.Builder
	for i := 0; i < len(pattern); i++ {
		switch {
		case pattern[i] == '\\':
			i++
			if i == len(pattern) || strings.IndexByte(unescaped, pattern[i]) < 0 {
				return "", false
			}
		case strings.IndexByte(meta, pattern[i]) >= 0:
			return "", false
		}
		b.WriteByte(pattern[i])
	}
	return b.String(), true
}

// stem returns the directory, with its slash, beneath which a path must be for a
// pattern to be asked about it. libselinux asks for three components, though the
// pattern might match without the slash after the last of them, or by another
// alternative. Where all must be there anyway, the stem is as long as can be.
func stem(pattern string, alternatives bool) string {
	dir := "/"
	if pattern[0] != '/' {
		return dir
	}
	for depth, rest := 1, pattern[1:]; ; depth++ {
		name, after, found := strings.Cut(rest, "/")
		name, ok := plain(name)
		optional := after != "" && strings.IndexByte("?*+{", after[0]) >= 0
		if !found || !ok || name == "" || depth > 3 && (optional || alternatives) {
			return dir
		}
		dir += name + "/"
		if optional {
			return dir
		}
		rest = after
	}
}

type op uint8

const (
	opClass op = iota
	opLiteral
	opConcat
	opAlternate
	opRepeat
)

// expr is a regular expression.
type expr struct {
	op       op
	class    class  // of opClass
	text     string // of opLiteral
	min, max int    // of opRepeat; max is -1 for no end
	steps    int    // how long it is, with repetitions
	subs     []*expr
}

// parse reads a pattern. It knows what file contexts are made of; the rest, and what
// is no expression at all, is left to regexp2 (ok is false).
func parse(pattern string) (e *expr, ok bool) {
	p := parser{text: pattern, ok: true}
	e = p.alternatives()
	return e, p.ok && p.text == "" && e.steps <= mostSteps
}

type parser struct {
	text string // what is yet to be read
	ok   bool
}

// peek returns the next byte, or 0 at the end and after a failure.
func (p *parser) peek() byte {
	if !p.ok || p.text == "" {
		return 0
	}
	return p.text[0]
}

func (p *parser) next() byte {
	b := p.peek()
	if b == 0 {
		p.ok = false
		return 0
	}
	p.text = p.text[1:]
	return b
}

func (p *parser) skip(b byte) bool {
	if p.peek() != b {
		return false
	}
	p.text = p.text[1:]
	return true
}

func (p *parser) alternatives() *expr {
	e := p.concat()
	if p.peek() != '|' {
		return e
	}
	all := &expr{op: opAlternate}
	all.hold(e)
	for p.skip('|') {
		all.hold(p.concat())
	}
	return all
}

func (p *parser) concat() *expr {
	all := &expr{op: opConcat}
	for b := p.peek(); b != 0 && b != '|' && b != ')'; b = p.peek() {
		// Most of a pattern is text. Its last byte may be one that is repeated.
		if end := strings.IndexAny(p.text, meta+`\`); end > 1 {
			all.hold(&expr{op: opLiteral, text: p.text[:end-1], steps: end - 1})
			p.text = p.text[end-1:]
		}
		all.hold(p.repeated())
	}
	return all
}

func (e *expr) hold(sub *expr) {
	e.subs = append(e.subs, sub)
	e.steps += max(sub.steps, 1)
}

func (p *parser) repeated() *expr {
	e := p.atom()
	r := &expr{op: opRepeat, max: -1, subs: []*expr{e}}
	switch {
	case p.skip('*'):
	case p.skip('+'):
		r.min = 1
	case p.skip('?'):
		r.max = 1
	case p.skip('{'):
		r.min = p.number()
		r.max = r.min
		if p.skip(',') {
			r.max = -1
			if p.peek() != '}' {
				r.max = p.number()
				p.ok = p.ok && r.max >= r.min
			}
		}
		p.ok = p.skip('}') && p.ok
	default:
		return e
	}
	r.steps = min(max(e.steps, 1)*max(r.min, r.max, 1), mostSteps+1)
	p.skip('?') // few are tried first: that decides what is found, not whether
	if b := p.peek(); b != 0 && strings.IndexByte("*+?{", b) >= 0 {
		p.ok = false
	}
	return r
}

func (p *parser) number() (n int) {
	first := true
	for b := p.peek(); b >= '0' && b <= '9' && n <= mostSteps; b = p.peek() {
		n = n*10 + int(p.next()-'0')
		first = false
	}
	p.ok = p.ok && !first
	return n
}

func (p *parser) atom() *expr {
	e := &expr{op: opClass, steps: 1}
	switch b := p.next(); b {
	case '(':
		if p.skip('?') {
			p.ok = p.skip(':')
		}
		e = p.alternatives()
		p.ok = p.skip(')') && p.ok
	case '[':
		e.class = p.set()
	case '.':
		e.class = anyByte
	case '\\':
		e.class, _ = p.escape()
	case '*', '+', '?', '{', '^', '$':
		p.ok = false
	default:
		e.class.add(b)
	}
	return e
}

// escape reads what comes after a backslash. single says that it is one byte, which
// can be an end of a range.
func (p *parser) escape() (c class, single bool) {
	b := p.next()
	letter := b | 0x20
	switch {
	case letter == 'd' || letter == 'w' || letter == 's':
		c = escapes[letter]
		if b != letter {
			c = c.inverted()
		}
		return c, false
	case letter >= 'a' && letter <= 'z' || b >= '0' && b <= '9':
		p.ok = false
	}
	c.add(b)
	return c, true
}

// set reads what comes after an opening bracket.
func (p *parser) set() (c class) {
	not := p.skip('^')
	for first := true; p.ok && (first || p.peek() != ']'); first = false {
		low, single := p.member()
		if p.peek() != '-' || strings.HasPrefix(p.text, "-]") {
			c.merge(low)
			continue
		}
		p.next()
		high, alsoSingle := p.member()
		from, to := low.only(), high.only()
		p.ok = p.ok && single && alsoSingle && from <= to
		for b := int(from); p.ok && b <= int(to); b++ {
			c.add(byte(b))
		}
	}
	p.ok = p.skip(']') && p.ok
	if not {
		c = c.inverted()
	}
	return c
}

// member reads a byte or a class within brackets.
func (p *parser) member() (c class, single bool) {
	switch b := p.next(); {
	case b == '\\':
		return p.escape()
	case b == '[' && p.peek() != 0 && strings.IndexByte(":.=", p.peek()) >= 0:
		p.ok = false
	default:
		c.add(b)
	}
	return c, true
}

// only returns the first byte of c.
func (c *class) only() byte {
	for b := range 256 {
		if c.has(byte(b)) {
			return byte(b)
		}
	}
	return 0
}
