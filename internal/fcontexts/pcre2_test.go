// SPDX-License-Identifier: Apache-2.0

package fcontexts

import (
	"strings"
	"testing"
)

// patterns has what pcre2syntax(3) lists, with a name that fits and one that does not. The
// last of them are those that only regexp2 can match.
var patterns = []struct{ pattern, is, isNot string }{
	{`\x20x\.\-\/\@`, " x.-/@", "x"},
	{`Virtual\x20VMs(/.*)?`, "Virtual VMs/disk", "VirtualVMs"},
	{`a\Q.*[\E[b]`, "a.*[b", "axb"},
	{`\Qa+`, "a+$x", "a+"},
	{`a\E+\Q\Eb`, "aab", "b"},
	{`\a\cA\c{\e\f\n\r\tx`, "\a\x01;\x1b\f\n\r\tx", "x"},
	{`\001\012\18x\o{101}\x41\x{41}`, "\x01\n\x018xAAA", "AAA"},
	{`[\1\81\x41\x{42}\o{103}\cA]+x`, "\x0181ABCx", "Dx"},
	{`\xe9[\xe0-\xff]\x{fF}`, "\xe9\xea\xff", "\xe9\xdf\xff"},
	{`.\C\N`, "\n\n\xff", "aa\n"},
	{`\d\D\h\H\s\S`, "1a\xa0b\vc", "1a b\xa0c"},
	{`\v\V\w\W`, "\x85a_\xe9", "aa__"},
	{`[\d\D][\h][^\H][\s][^\S][\v][^\V]x`, "a\t\xa0\v\f\x85\rx", "a\t\xa0\v\f\x84\rx"},
	{`\p{L}\pN\P{L}\p{^Lu}\p{L&}\p{Any}x`, "\xe91\xd7a\xc9\xffx", "\xe9a\xd7a\xc9\xffx"},
	{`\p{Xan}\p{Xwd}\p{Xsp}\p{Xps}\p{Xuc}[\p{Zs}\p{Nd}]x`, "a_\xa0\x85@\xa0x", "a_\xa0\x85a\xa0x"},
	{`[]a]]`, "]]", "]"},
	{`[^]a]]`, "b]", "]]"},
	{`[W-]46]`, "-46]", "X46]"},
	{`[W-\]46]+`, "X]4", "-"},
	{`[a-c-e]+`, "b-e", "d"},
	{`[\Qa-z^]\E]+`, "a-z^]", "b"},
	{`[\E]a]+`, "]a", "b"},
	{`[[:alpha:][:^ascii:]_]+`, "aZ_\xe9", "1"},
	{`[[:alnum:]][[:blank:]][[:cntrl:]][[:digit:]][[:graph:]][[:lower:]]`, "a\t\x7f1~z", "a\t\x7f1 z"},
	{`[[:print:]][[:punct:]][[:space:]][[:upper:]][[:word:]][[:xdigit:]]`, " ~\vA_f", "\x7f~\vA_f"},
	{`[^[:^digit:]]+[[:x]`, "12x", "a:"},
	{`[\b\-\.]+[[]x`, "\b-.[x", "b[x"},
	{`a??b*?c+?d{2}e{1,}f{0,2}?g{2,3}`, "bccddeffggg", "acdegg"},
	{`a{b{1,2c}}`, "a{b{1,2c}}", "ab"},
	{`(?:a|(b)|(?<n>c)|(?'m'd)|(?P<o>e)|)x`, "ex", "aex"},
	{`a(?#[(comment*)b(?C)(?C7)(?C"te)xt")c(*MARK:name)(*:name)d`, "abcd", "ab"},
	{`a(?i)B(?-i)c(?i:D)|E`, "abcD", "f"},
	{`(?i)k[s-u][^a][[:upper:]]\x4b`, "KTbck", "KTAck"},
	{`(?s-s).(?s:.)(?^).(?^i:X.)x`, "a\nbxbx", "\nabxbx"},
	{`(?J)(?x)(?xx)(?n)(?U)a+(b)(?:c*)x`, "aabccx", "bx"},
	{`(?|a|(b))+x`, "abx", "cx"},
	{`a\Kb(*sr:c)(*script_run:d)`, "abcd", "a"},
	{`lib(32|64)?(|/x)`, "lib64/x", "lib3"},
	{`(?:x{1000}){1,2}`, strings.Repeat("x", 1500 /* which is none */) + strings.Repeat("x", 500), "x"},

	{`a*+ab`, "", "aab"},
	{`a?+b++c{1,2}+d{2}+(?:e|f)*+x`, "abbccddefx", "abbcd"},
	{`x{1001}`, strings.Repeat("x", 1001), "x"},
	{`(?>a|ab)c(*atomic:d+)e`, "acdde", "abcde"},
	{`a(?=b)(?!bc).(?<=b)(?<!ab)x`, "", "abx"},
	{`(?!no).*`, "yes", "now"},
	{`(*pla:a)(*positive_lookahead:.b)(*nla:x)a(*negative_lookahead:c)b(*plb:b)(*nlb:a)x`, "abx", "acx"},
	{`(?*ab)(*napla:a)a(?<*a)(*naplb:a)b`, "ab", "aab"},
	{`(a|b)\1\g1\g{1}\g{-1}\g-1x`, "bbbbbbx", "abbbbbx"},
	{`(?<n>a|b)\k<n>\k'n'\k{n}\g{n}(?P=n)x`, "bbbbbbx", "bbabbbx"},
	{`((a)|b)*\2`, "abaa", "bb"},
	{`(?:\g{+1}b|(a))+`, "aab", "ab"},
	{`(a)(b)(c)(d)(e)(f)(g)(h)(i)(j)\10\11`, "abcdefghijj\t", "abcdefghijja"},
	{`(a)?(?(1)b|c)(?(<n>)x|y)(?<n>d)?`, "aby", "acy"},
	{`(?(?=a)ab|cd)(?(*nla:a)x|y)`, "abx", "aby"},
	{`\bab\b\Bc|x`, "zx", "abc"},
	{`[[:<:]]ab[[:>:]]-\b.`, "ab-c", "ab--"},
	{`a$`, "a\n", "a\n\n"},
	{`a\z`, "a", "a\n"},
	{`a\Z`, "a\n", "ab"},
	{`\Aa|\Gb|^c|d`, "xd", "a/b"},
	{`(?m)a$|^b`, "a\nx", "ax"},
	{`\R\R\Xa\X`, "\r\n\x85\r\na\xe9", "\r\na\xe9"},
	{`(?i)(a)\1(?!B).`, "aAc", "aab"},
	{`a(*F)|a(*FAIL)|b`, "xb", "a"},
	{`(*asr:a+)(*atomic_script_run:b*)x`, "aabx", "ab"},
}

// TestPatterns: a pattern of PCRE2 matches what it does there.
func TestPatterns(t *testing.T) {
	for _, p := range patterns {
		s := load(t, map[string]string{"": "/.* any\n/p/" + p.pattern + " fits\n"})
		if got := label(s.Lookup("/p/"+p.is, File)); p.is != "" && got != "fits" {
			t.Errorf("%s of %q: %s", p.pattern, p.is, got)
		}
		if got := label(s.Lookup("/p/"+p.isNot, File)); got != "any" {
			t.Errorf("%s of %q: %s", p.pattern, p.isNot, got)
		}
	}
}
