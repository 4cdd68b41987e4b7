// SPDX-License-Identifier: Apache-2.0

package avc

import (
	"encoding/hex"
	"slices"
	"strings"
)

// Denial is what the policy refused, or would have.
type Denial struct {
	Permissions []string // such as read and open
	Source      string   // the context of the process
	Target      string   // the context of what it wanted to use
	Class       string   // of the target: file, dir, capability
	Comm        string   // the program's name, its first 15 bytes
	Name        string   // the last part of the target's path, or the whole; "" where the kernel does not say
	Permissive  bool     // it was let pass

	Text string // the message, as it came
}

// parse takes a message apart, and gives false for one that tells no denial.
//
// A value with a blank, a quote or a byte that is no ASCII in it comes in
// hexadecimal digits and without quotes, so blanks separate.
func parse(text string) (Denial, bool) {
	text = strings.TrimRight(text, "\x00\n ")
	_, rest, is := strings.Cut(text, "avc:  denied  { ")
	permissions, rest, closed := strings.Cut(rest, " } for ")
	if !is || !closed {
		return Denial{}, false
	}
	d := Denial{Permissions: strings.Fields(permissions), Text: text}
	for field := range strings.FieldsSeq(rest) {
		key, value, _ := strings.Cut(field, "=")
		switch key {
		case "scontext":
			d.Source = value
		case "tcontext":
			d.Target = value
		case "tclass":
			d.Class = value
		case "comm":
			d.Comm = untrusted(value)
		case "name", "path":
			d.Name = untrusted(value)
		case "permissive":
			d.Permissive = value == "1"
		}
	}
	return d, true
}

// untrusted is a string that a process chose: in quotes, or in hexadecimal.
func untrusted(value string) string {
	if text, is := strings.CutPrefix(value, `"`); is {
		return strings.TrimSuffix(text, `"`)
	}
	if text, err := hex.DecodeString(value); err == nil {
		return string(text)
	}
	return value
}

// Like reports whether d has what want says. What is empty in want may be
// anything; d may have more permissions.
func (d Denial) Like(want Denial) bool {
	for _, p := range want.Permissions {
		if !slices.Contains(d.Permissions, p) {
			return false
		}
	}
	same := func(got, want string) bool { return want == "" || got == want }
	return same(d.Source, want.Source) && same(d.Target, want.Target) && same(d.Class, want.Class) &&
		same(d.Comm, want.Comm) && same(d.Name, want.Name) && d.Permissive == want.Permissive
}
