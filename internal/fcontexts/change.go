// SPDX-License-Identifier: Apache-2.0

package fcontexts

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Customizable are the types that restorecon leaves as they are: an administrator may
// have chosen them.
type Customizable map[string]bool

// LoadCustomizable reads the types of the policy that file, as [LoadedFile] names it,
// belongs to. Where the policy has no list, there are none.
func LoadCustomizable(file string) (Customizable, error) {
	text, err := os.ReadFile(filepath.Join(filepath.Dir(file), "../customizable_types"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	c := Customizable{}
	for line := range strings.Lines(string(text)) {
		c[strings.TrimSuffix(line, "\n")] = true // libselinux compares with the whole line
	}
	return c, nil
}

// Change returns what restorecon writes where an entry has the label have, "" if it has
// none, and its rule says want; "" if the entry is left as it is. That is want itself
// for an entry without a label, or if all of a label counts (-F). Else only the type
// counts: the entry keeps its user, role and level, and a customizable type, of which
// custom tells. A label that is no context is an error then.
//
// (libselinux 3.4 to 3.11: src/selinux_restorecon.c, restorecon_sb; src/context.c)
func (c Customizable) Change(have, want string, all bool) (label string, custom bool, err error) {
	if have == want {
		return "", false, nil
	}
	if have == "" || all {
		return want, false, nil
	}
	before, typ, level, err := split(have)
	if err != nil {
		return "", false, err
	}
	_, wanted, _, err := split(want)
	if err != nil || wanted == typ || c[typ] {
		return "", err == nil && wanted != typ, err
	}
	return before + wanted + level, false, nil
}

// split returns a context in three parts: user and role, type, and what follows, with
// the colons between them.
func split(context string) (before, typ, level string, err error) {
	fields := strings.SplitN(context, ":", 4)
	if n := strings.Count(context, ":"); n < 2 || n > 5 || fields[2] == "" || strings.ContainsAny(context, "\n\t\r") {
		return "", "", "", fmt.Errorf("%q is not a security context", context)
	}
	typ = fields[2]
	start := len(fields[0]) + len(fields[1]) + 2
	if strings.Contains(context[:start+len(typ)], " ") {
		return "", "", "", fmt.Errorf("%q is not a security context", context)
	}
	return context[:start], typ, context[start+len(typ):], nil
}
