// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"

	"github.com/spf13/pflag"

	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/words"
)

// resumption is the command line that resumes this run, for a shell:
// the same flags, and of the operands those that are left.
func resumption(name string, s *settings, operands, left []string) string {
	line := []string{name}
	if s.command != "" {
		line = append(line, s.command)
	}
	s.given.Visit(func(f *pflag.Flag) {
		for _, v := range valuesOf(f) {
			word := "--" + f.Name
			if v != f.NoOptDefVal {
				word += "=" + v
			}
			line = append(line, word)
		}
	})
	line = append(line, "--")
	undone := map[string]bool{}
	for _, l := range left {
		undone[l] = true
	}
	for _, o := range operands {
		if undone[o] {
			line = append(line, o)
		}
	}
	for i, w := range line {
		line[i] = words.Shell(w)
	}
	return strings.Join(line, " ")
}

// toResume stands before that line. A list that came through a pipe is gone.
func toResume(s *settings) string {
	switch {
	case s.filesFrom == "-":
		return "not done; to resume, with the same list again on stdin: "
	case strings.HasPrefix(s.filesFrom, "/dev/"):
		return "not done; to resume, with the same list again in " + words.Brief(s.filesFrom) + ": "
	}
	return "not done; to resume: "
}
