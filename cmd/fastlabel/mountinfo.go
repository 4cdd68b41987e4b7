// SPDX-License-Identifier: Apache-2.0

package main

import (
	"iter"
	"strconv"
	"strings"
)

// mountLine is what the command wants to know of one line of mountinfo
// (proc_pid_mountinfo(5)): which directory of which kind of filesystem is
// mounted where, and how.
type mountLine struct {
	id                  string
	root, point, fstype string
	source              string
	options, super      []string // of the mount, of the filesystem
}

// mountLines goes through the text of a mountinfo file; a line that it cannot
// read is left out.
func mountLines(text string) iter.Seq[mountLine] {
	return func(yield func(mountLine) bool) {
		for line := range strings.Lines(text) {
			mine, theirs, _ := strings.Cut(line, " - ")
			f, g := strings.Fields(mine), strings.Fields(theirs)
			if len(f) < 5 || len(g) == 0 {
				continue
			}
			m := mountLine{id: f[0], root: unescapeOctal(f[3]), point: unescapeOctal(f[4]), fstype: unescapeOctal(g[0])}
			if len(f) > 5 {
				m.options = strings.Split(f[5], ",")
			}
			if len(g) > 2 {
				m.source, m.super = unescapeOctal(g[1]), strings.Split(g[2], ",")
			}
			if !yield(m) {
				return
			}
		}
	}
}

// unescapeOctal undoes what the kernel does to space, tab, newline and
// backslash (mangle_path).
func unescapeOctal(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
