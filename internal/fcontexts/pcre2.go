// SPDX-License-Identifier: Apache-2.0

package fcontexts

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"
)

// class is a set of bytes.
type class [4]uint64

func (c *class) has(b byte) bool { return c[b>>6]>>(b&63)&1 != 0 }

func (c *class) add(from, to byte) {
	for b := int(from); b <= int(to); b++ {
		c[b>>6] |= 1 << (b & 63)
	}
}

func (c class) inverted() class { return class{^c[0], ^c[1], ^c[2], ^c[3]} }

var anyByte = class{}.inverted()

// sets are the classes that have a name, as pairs of a first and a last byte.
var sets = map[string]string{
	"d": "09", "h": "\t\t  \xa0\xa0", "s": "\t\r  ", "v": "\n\r\x85\x85", "w": "09AZ__az",
	"alnum": "09AZaz", "alpha": "AZaz", "ascii": "\x00\x7f", "blank": "\t\t  ", "cntrl": "\x00\x1f\x7f\x7f",
	"digit": "09", "graph": "!~", "lower": "az", "print": " ~", "punct": "!/:@[`{~", "space": "\t\r  ",
	"upper": "AZ", "word": "09AZ__az", "xdigit": "09AFaf",
}

// named returns one of sets, which not inverts.
func named(name string, not bool) (c class, ok bool) {
	pairs, ok := sets[name]
	for i := 0; i < len(pairs); i += 2 {
		c.add(pairs[i], pairs[i+1])
	}
	if not {
		c = c.inverted()
	}
	return c, ok
}

// groups maps the beginning of a group to what is written for it.
var groups = map[string]string{
	"?:": "(?:", "?>": "(?>", "?=": "(?=", "?!": "(?!", "?<=": "(?<=", "?<!": "(?<!", "*atomic:": "(?>",
	"*pla:": "(?=", "*positive_lookahead:": "(?=", "*nla:": "(?!", "*negative_lookahead:": "(?!",
	"*plb:": "(?<=", "*positive_lookbehind:": "(?<=", "*nlb:": "(?<!", "*negative_lookbehind:": "(?<!",
	// All bytes, taken for Latin-1, are of one script.
	"*sr:": "(?:", "*script_run:": "(?:", "*asr:": "(?>", "*atomic_script_run:": "(?>",
	// Groups with common numbers, and assertions that can be matched in another way later, mean
	// the same only where no reference is.
	"?|": "(?:", "?*": "(?=", "?<*": "(?<=", "*napla:": "(?=", "*naplb:": "(?<=",
	"*non_atomic_positive_lookahead:": "(?=", "*non_atomic_positive_lookbehind:": "(?<=",
}

// words are the items that are always written alike. A quantifier may follow the last line.
var words = map[string]string{
	`\A`: `\A`, `\G`: `\A`, `\b`: `\b`, `\B`: `\B`, `\z`: `\z`, `\Z`: `\Z`, `\K`: "", // \K: the match is said to begin there
	`|`: `|`, `^`: `(?:\A|^(?!\z))`, `$`: `$`, // with (?m) ^ fits after each newline but one at the end
	`[[:<:]]`: `\b(?=\w)`, `[[:>:]]`: `\b(?<=\w)`, `(*F)`: `(?!)`, `(*FAIL)`: `(?!)`,
	`.`: `.`, `\C`: `(?s:.)`, `\X`: `(?>\x0d\x0a|(?s:.))`, `\R`: "(?>\\x0d\\x0a|[\\x0a-\\x0d\ue085])", // in Latin-1
}

// special are properties that only PCRE2 has, in the words of package regexp.
var special = map[string]string{
	"l&": `\p{LC}`, "xan": `[\pL\pN]`, "xwd": `[\pL\pN_]`, "xps": `[\pZ\t-\r\x{85}]`, "xsp": `[\pZ\t-\r\x{85}]`, "xuc": "[$@`\\x{a0}-\\x{ff}]",
}

// Where one of these has a group that is not empty, it is what is named or set.
var (
	quotes     = lazily(`(?s)\\Q(.*?)(\\E|$)|\\.`)
	fixed      = lazily(`^(?:\\[AGbBzZKCXR]|[|.^$]|\[\[:[<>]:\]\]|\(\*F(?:AIL)?\))`)
	repeats    = lazily(`^(?:[*+?]|\{(\d+)(?:,(\d*))?\}|\{(,\d+)\})`)
	options    = lazily(`^\?(\^?)([A-Za-z]*)(?:-([A-Za-z]*))?([:)])`)
	captures   = lazily(`^\?(?:P?<(\w+)>|'(\w+)')`)
	enters     = lazily(`^(?:\?(?:[:>=!]|<[=!])|(\?<?[|*]|\*na[a-z_]+:|\*non[a-z_]+:)|\*[a-z_]+:)`)
	references = lazily(`^(?:\\(?:g([+-]?\d+)|[gk]\{([+-]?\w+)\}|k<(\w+)>|k'(\w+)')|\(\?P=(\w+)\))`)
	conditions = lazily(`^\?\((?:([+-]?\d+)|<(\w+)>|'(\w+)')\)`)
	bytes8     = lazily(`^(?:x\{([[:xdigit:]]+)\}|x([[:xdigit:]]{0,2})|o\{([0-7]+)\}|([0-7]{1,3}))`)
	properties = lazily(`^[pP](?:\{(\^?[\w&]+)\}|([A-Z]))`)
	// Comments, callouts and marks do not decide whether a path matches.
	silent = lazily("^(?:\\?#[^)]*|\\?C(?:\\d*|`[^`]*`|'[^']*'|\"[^\"]*\"|\\^[^^]*\\^|%[^%]*%|#[^#]*#|\\$[^$]*\\$|\\{[^}]*\\})|\\*(?:MARK)?:[^)]+)\\)")
)

// lazily compiles when it is first asked: not in each process that labels one volume.
func lazily(text string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })
}

// translate reads a pattern of PCRE2 (pcre2syntax(3), pcre2pattern(3)) on bytes, with
// DOTALL and no other option, and returns it in the words that package regexp/syntax and
// regexp2 have in common; what it cannot say, the one refuses, and the other matches. A byte
// beyond ASCII is a rune of private use: [runeOf].
func translate(pattern string) (string, error) {
	pattern = quotes().ReplaceAllStringFunc(pattern, unquoted)
	r := reader{rest: pattern, atom: -1}
	for r.rest != "" && r.err == nil {
		r.item()
	}
	if len(r.open) > 0 {
		r.fail("a parenthesis is not closed")
	}
	if r.refers && r.vague {
		r.fail("a reference beside (?|, (?n), (?* or two groups of one name is not supported")
	}
	return string(r.out), r.err
}

// unquoted returns \Q...\E in other words, and other escapes as they are. Without \E it quotes
// the $ that ends all too.
func unquoted(item string) (text string) {
	quoted, is := strings.CutPrefix(item, `\Q`)
	if !is {
		return strings.TrimPrefix(item, `\E`)
	}
	quoted, closed := strings.CutSuffix(quoted, `\E`)
	for i := range len(quoted) {
		text += fmt.Sprintf(`\x%02x`, quoted[i])
	}
	if !closed {
		text += `\$\C*`
	}
	return text
}

// reader reads a pattern and writes its translation.
type reader struct {
	rest string
	out  []byte
	err  error

	atom   int      // where in out the item begins that a quantifier is about; -1: there is none
	open   []int    // where in out the groups begin that are not closed
	groups []string // their names, so far

	refers, vague bool // to groups; and to which is not known
	// after (?i), (?x) and (?U)
	folded, extended, lazy bool
}

// fail keeps the first error, which says where it was.
func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(format+", before %q", append(args, r.rest)...)
	}
	r.rest = ""
}

// skip skips prefix, if the rest begins with it.
func (r *reader) skip(prefix string) (ok bool) {
	r.rest, ok = strings.CutPrefix(r.rest, prefix)
	return ok
}

// take skips what fits re, if the rest begins with it, and returns what its groups hold.
func (r *reader) take(re func() *regexp.Regexp) (held []string, ok bool) {
	if held = re().FindStringSubmatch(r.rest); held == nil {
		return nil, false
	}
	r.rest = r.rest[len(held[0]):]
	return held, true
}

func (r *reader) next() (b byte) {
	if r.rest == "" {
		r.fail("it ends too early")
		return 0
	}
	b, r.rest = r.rest[0], r.rest[1:]
	return b
}

// write writes an item, which a quantifier may follow.
func (r *reader) write(item string) {
	r.atom = len(r.out)
	r.out = append(r.out, item...)
}

// assert writes one that no quantifier may follow.
func (r *reader) assert(item string) {
	r.write(item)
	r.atom = -1
}

// byte writes b so that it is no meta character.
func (r *reader) byte(b byte) {
	switch {
	case b >= 0x80:
		r.out = utf8.AppendRune(r.out, runeOf(b))
	case b == '/' || b >= '0' && b <= '9' || b|0x20 >= 'a' && b|0x20 <= 'z':
		r.out = append(r.out, b)
	default:
		r.out = fmt.Appendf(r.out, `\x%02x`, b)
	}
}

func (r *reader) literal(b byte) {
	r.write("")
	r.byte(b)
}

// set writes a class: what c has, or what it has not.
func (r *reader) set(c class, not bool) {
	if c == (class{}) {
		c, not = anyByte, !not
	}
	r.write("[")
	if not {
		r.out = append(r.out, '^')
	}
	for b := 0; b < 256; b++ {
		if !c.has(byte(b)) {
			continue
		}
		from := b
		for b < 255 && b != 0x7f && c.has(byte(b+1)) {
			b++
		}
		r.byte(byte(from))
		if b > from {
			r.out = append(r.out, '-')
			r.byte(byte(b))
		}
	}
	r.out = append(r.out, ']')
}

// item reads an item of a pattern.
func (r *reader) item() {
	if strings.IndexByte(meta+`\#`, r.rest[0]) < 0 { // as most are
		r.literal(r.next())
		return
	}
	if q, ok := r.take(repeats); ok {
		r.repeat(q)
		return
	}
	if group, ok := r.take(references); ok {
		r.refer(strings.Join(group[1:], ""))
		return
	}
	if word, ok := r.take(fixed); ok {
		text := words[word[0]]
		if text == "|" && len(r.open) == 0 { // of ^a|b|c$, ^ belongs to the first and $ to the last
			text = "(?s:.*)|(?s:.*)"
		}
		if r.write(text); strings.IndexByte(`.CXR`, word[0][len(word[0])-1]) < 0 {
			r.atom = -1
		}
		return
	}
	switch b := r.next(); {
	case b == '\\':
		r.escape()
	case b == '[':
		r.class()
	case b == '(':
		r.group()
	case b == ')' && len(r.open) == 0:
		r.fail("no parenthesis is open")
	case b == ')':
		r.out = append(r.out, ')')
		r.atom, r.open = r.open[len(r.open)-1], r.open[:len(r.open)-1]
	case b == '#' && r.extended:
		r.fail("(?x) has a comment")
	default:
		r.literal(b)
	}
}

// repeat writes a quantifier, and reads what makes it lazy or possessive.
func (r *reader) repeat(q []string) {
	n, _ := strconv.Atoi(q[1])
	m, err := strconv.Atoi(q[2])
	switch {
	case q[3] != "":
		r.fail("%s means something else since PCRE2 10.43", q[0])
		return
	case r.atom < 0 || max(n, m) > 65535 || err == nil && m < n:
		r.fail("%s can repeat nothing", q[0])
		return
	}
	r.out = append(r.out, q[0]...)
	possessive := r.skip("+")
	if !possessive && r.skip("?") != r.lazy {
		r.out = append(r.out, '?')
	} else if possessive {
		r.out = append(slices.Insert(r.out, r.atom, []byte("(?>")...), ')')
	}
	r.atom = -1
}

// called returns the name of the group that is referred to, which may come later. One without
// a name is called by its number.
func (r *reader) called(given string) string {
	r.refers = true
	n, err := strconv.Atoi(given)
	switch {
	case err != nil:
		return given
	case given[0] == '-':
		n += len(r.groups) + 1
	case given[0] == '+':
		n += len(r.groups)
	}
	if n <= 0 {
		r.fail("no group %s is there", given)
	} else if n <= len(r.groups) {
		return r.groups[n-1]
	}
	return fmt.Sprintf("_%d_", n)
}

func (r *reader) refer(given string) { r.write(`\k<` + r.called(given) + `>`) }

// escape reads what comes after a backslash.
func (r *reader) escape() {
	digits := r.rest[:len(r.rest)-len(strings.TrimLeft(r.rest, "0123456789"))]
	if n, _ := strconv.Atoi(digits); digits != "" && digits[0] != '0' && (n < 10 || digits[0] >= '8' || n <= len(r.groups)) {
		r.rest = r.rest[len(digits):]
		r.refer(digits)
		return
	}
	before := r.rest
	switch r.next() {
	case 'N':
		if strings.HasPrefix(r.rest, "{") && !repeats().MatchString(r.rest) {
			r.fail(`\N{ is not supported`)
		}
		r.write(`[^\x0a]`)
	default:
		r.rest = before
		c, b, single := r.member()
		if single {
			r.literal(b)
		} else {
			r.set(c, false)
		}
	}
}

// member reads, after a backslash, what may also be in brackets: a byte or a class.
func (r *reader) member() (c class, b byte, single bool) {
	if code, ok := r.take(bytes8); ok {
		value, err := strconv.ParseUint("0"+code[1]+code[2], 16, 32)
		octal, alsoErr := strconv.ParseUint("0"+code[3]+code[4], 8, 32)
		if value += octal; err != nil || alsoErr != nil || value > 0xff || code[0] == "x" && strings.HasPrefix(r.rest, "{") {
			r.fail("%s is no byte", code[0])
		}
		return c, byte(value), true
	}
	if name, ok := r.take(properties); ok {
		return r.property(name[0][0] == 'P', name[1]+name[2]), 0, false
	}
	b = r.next()
	if c, ok := named(string(b|0x20), b&0x20 == 0); ok {
		return c, 0, false
	}
	switch i := strings.IndexByte("aefnrt", b); {
	case i >= 0:
		b = "\a\x1b\f\n\r\t"[i]
	case b == 'c':
		if b = r.next(); b >= 'a' && b <= 'z' {
			b -= 'a' - 'A'
		}
		b ^= 0x40
	case b|0x20 >= 'a' && b|0x20 <= 'z':
		r.fail(`\%c is not supported here`, b)
	}
	return c, b, true
}

// property returns the bytes that have a property of Unicode, as Latin-1.
func (r *reader) property(not bool, name string) (c class) {
	name, inverted := strings.CutPrefix(strings.ToLower(strings.ReplaceAll(name, "_", "")), "^")
	re, err := regexp.Compile(cmp.Or(special[name], `\p{`+name+`}`))
	if err != nil || r.folded {
		r.fail("the property %s is not supported", name)
		return c
	}
	for b := range 256 {
		if re.MatchString(string(rune(b))) != (not != inverted) {
			c.add(byte(b), byte(b))
		}
	}
	return c
}

// class reads what comes after an opening bracket.
func (r *reader) class() {
	var all class
	not := r.skip("^")
	for first := true; r.err == nil; {
		if !first && r.skip("]") {
			break
		}
		first = false
		c, low, single := r.inBrackets()
		high := low
		if strings.HasPrefix(r.rest, "-") && !strings.HasPrefix(r.rest, "-]") {
			r.next()
			var alsoSingle bool
			if _, high, alsoSingle = r.inBrackets(); !single || !alsoSingle || high < low {
				r.fail("a class has a range that is none")
			}
		}
		if single {
			c.add(low, high)
		}
		for i := range all {
			all[i] |= c[i]
		}
	}
	r.set(all, not)
}

// inBrackets reads a byte or a class within brackets.
func (r *reader) inBrackets() (c class, b byte, single bool) {
	switch b = r.next(); {
	case b == '\\' && r.skip("b"):
		return c, '\b', true
	case b == '\\' && (strings.HasPrefix(r.rest, "8") || strings.HasPrefix(r.rest, "9")):
		return c, r.next(), true
	case b == '\\':
		return r.member()
	case b == '[' && r.rest != "" && strings.IndexByte(":.=", r.rest[0]) >= 0:
		name, rest, ok := strings.Cut(r.rest[1:], r.rest[:1]+"]")
		if !ok || strings.ContainsAny(name, `]\`) {
			break
		}
		bare, not := strings.CutPrefix(name, "^")
		if c, ok = named(bare, not); !ok || r.rest[0] != ':' || len(bare) == 1 || not && r.folded {
			r.fail("a class named %s is not supported", name)
			return c, 0, false
		}
		r.rest = rest
		return c, 0, false
	}
	return c, b, true
}

// group reads what comes after an opening parenthesis.
func (r *reader) group() {
	if _, ok := r.take(silent); ok {
		return
	}
	enter := func(text string) {
		r.open = append(r.open, len(r.out))
		r.out = append(r.out, text...)
		r.atom = -1
	}
	if kind, ok := r.take(enters); ok {
		r.vague = r.vague || kind[1] != ""
		if enter(groups[kind[0]]); groups[kind[0]] == "" {
			r.fail("%s is not supported", kind[0])
		}
		return
	}
	capture := func(name string) {
		r.vague = r.vague || slices.Contains(r.groups, name)
		r.groups = append(r.groups, name)
		enter("(?<" + name + ">")
	}
	if name, ok := r.take(captures); ok {
		capture(name[1] + name[2])
		return
	}
	if o, ok := r.take(options); ok {
		switch text := r.options(o[1] != "", o[2], o[3]); {
		case o[4] == ":":
			if enter("(?" + text + ":"); strings.Contains(o[2]+o[3], "U") {
				r.fail("(?U: is not supported")
			}
		case text != "":
			r.assert("(?" + text + ")")
		}
		return
	}
	if group, ok := r.take(conditions); ok {
		enter("(?(" + r.called(strings.Join(group[1:], "")) + ")")
		return
	}
	if strings.HasPrefix(r.rest, "?(?") || strings.HasPrefix(r.rest, "?(*") {
		r.skip("?")
		enter("(?") // and the condition is read as a group
		return
	}
	if r.rest != "" && (r.rest[0] == '?' || r.rest[0] == '*') {
		r.fail("what this group is to do is not supported")
		return
	}
	capture(fmt.Sprintf("_%d_", len(r.groups)+1))
}

// options returns those that count, as they are written.
func (r *reader) options(reset bool, set, unset string) string {
	if unknown := strings.Trim(set+unset, "imsxnUJ"); unknown != "" {
		r.fail("the option %s is not supported", unknown)
	}
	r.folded = r.folded || strings.Contains(set, "i")
	r.extended = r.extended || strings.Contains(set, "x")
	r.vague = r.vague || strings.Contains(set, "n")
	if strings.Contains(set, "m") { // which is about the $ that ends all too: for regexp2
		r.assert("(?=)")
	}
	on, off := "", ""
	if strings.Contains(set+unset, "U") && len(r.open) > 0 {
		r.fail("(?U) is not supported within a group")
	}
	r.lazy = (r.lazy || strings.Contains(set, "U")) && !strings.Contains(unset, "U")
	for _, o := range []string{"i", "m", "s"} {
		if strings.Contains(unset, o) || reset && !strings.Contains(set, o) {
			off += o
		} else if strings.Contains(set, o) {
			on += o
		}
	}
	if off != "" {
		off = "-" + off
	}
	return on + off
}
