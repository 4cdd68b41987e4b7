// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/user"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/exit"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/wait"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/words"
	"github.com/fastlabel/fastlabel/relabel"
)

// answer is f's result. Where ctx ends before, call hangs on path; "-" is a pipe, which
// may.
func answer[T any](ctx context.Context, call, path string, f func() (T, error)) (T, error) {
	r, err := wait.Within(ctx, f)
	if err != nil && path != "-" && exit.IsEnd(ctx, err) {
		err = hungAt(call, path, err)
	}
	return r, err
}

// hungAt is the end of a context while a call on path had not returned.
func hungAt(call, path string, end error) error {
	return &relabel.HungError{Calls: []relabel.HungCall{{Call: call, Path: path}}, Cause: end}
}

// input returns the content of file; of "-", stdin.
func input(ctx context.Context, stdin io.Reader, file string) ([]byte, error) {
	return answer(ctx, "read", file, func() (text []byte, err error) {
		if file == "-" {
			text, err = io.ReadAll(stdin)
		} else {
			text, err = os.ReadFile(file)
		}
		if err != nil {
			err = fmt.Errorf("--files-from %s: %w", words.Brief(file), cmp.Or(errors.Unwrap(err), err))
		}
		return text, err
	})
}

// splitPaths finds the paths in a file of them. In lines, the last newline may be
// missing and empty lines are skipped; with null each path is the exact bytes
// before a NUL.
func splitPaths(data []byte, file string, null bool) ([]string, error) {
	end, unit := []byte{'\n'}, "line"
	if null {
		end, unit = []byte{0}, "record"
	}
	var paths []string
	n := 0
	for item := range bytes.SplitSeq(bytes.TrimSuffix(data, end), end) {
		n++
		switch {
		case len(item) == 0 && null && len(data) > 0:
			return nil, exit.UsageError{Err: fmt.Errorf("--files-from %s: %s %d is empty", words.Brief(file), unit, n)}
		case len(item) == 0:
		case bytes.IndexByte(item, 0) >= 0:
			return nil, exit.UsageError{Err: fmt.Errorf("--files-from %s: %s %d holds a NUL; use --null for paths that end in NUL", words.Brief(file), unit, n)}
		default:
			paths = append(paths, string(item))
		}
	}
	return paths, nil
}

// globbed returns the paths with patterns replaced by what they match, as restorecon does for
// operands and lists (glob(3) with braces, tildes and hidden names). What exists by this
// name is taken for it, and what matches nothing stays as it is: no such file.
func (j *job) globbed(ctx context.Context, paths []string) (all []string, err error) {
	for _, p := range paths {
		found := []string{p}
		if strings.ContainsAny(p, `*?[{\`) || strings.HasPrefix(p, "~") {
			if found, err = answer(ctx, "readdir", p, func() ([]string, error) { return glob(p), nil }); err != nil {
				return nil, err
			}
		}
		all = append(all, found...)
	}
	return all, nil
}

// classes turns what glob(3) has in a class into what Go has.
var classes = strings.NewReplacer("[[]", "[[]", "[!]", `[^\]`, "[^]", `[^\]`, "[]", `[\]`, "[!", "[^",
	"[:alnum:]", "0-9A-Za-z", "[:alpha:]", "A-Za-z", "[:digit:]", "0-9", "[:lower:]", "a-z", "[:upper:]", "A-Z")

// home replaces ~ and ~USER in front.
func home(pattern string) string {
	name, rest, _ := strings.Cut(pattern, "/")
	if name == "~" {
		return filepath.Join(os.Getenv("HOME"), rest)
	}
	if name, is := strings.CutPrefix(name, "~"); is {
		if account, err := user.Lookup(name); err == nil {
			return filepath.Join(account.HomeDir, rest)
		}
	}
	return pattern
}

func glob(pattern string) (found []string) {
	if _, err := os.Lstat(pattern); err == nil {
		return []string{pattern}
	}
	for _, p := range braces(pattern) {
		p, slash := strings.CutSuffix(p, "/")
		names, _ := filepath.Glob(classes.Replace(home(p))) // what is no pattern matches nothing
		for _, name := range names {
			if slash {
				name += "/"
			}
			if _, err := os.Lstat(name); err == nil { // a directory, with a slash
				found = append(found, name)
			}
		}
	}
	if len(found) == 0 {
		return []string{pattern}
	}
	return found
}

// braces returns what {a,b} in pattern stands for, in its order.
func braces(pattern string) (all []string) {
	depth, start, cuts := 0, 0, []int{}
	for i := 0; i < len(pattern); i++ {
		switch c := pattern[i]; {
		case c == '\\':
			i++
		case c == '{' && strings.HasPrefix(pattern[i:], "{}"):
			i++
		case c == '{':
			if depth++; depth == 1 {
				start, cuts = i, []int{i}
			}
		case c == ',' && depth == 1:
			cuts = append(cuts, i)
		case c == '}' && depth == 1:
			cuts = append(cuts, i)
			for n, cut := range cuts[1:] {
				all = append(all, braces(pattern[:start]+pattern[cuts[n]+1:cut]+pattern[i+1:])...)
			}
			return all
		case c == '}' && depth > 1:
			depth--
		}
	}
	return []string{pattern}
}

func isGlob(name string) bool { return strings.ContainsAny(name, "*?[") }

// matchExclude puts in place of the patterns of --exclude what they match in each PATH as the
// run begins. A file that has the pattern as its name comes first. No link leads out of a PATH.
// Scripts give restorecon the same list on every machine: what does not exist is ignored there.
func (j *job) matchExclude(ctx context.Context, paths []string) error {
	lenient := j.command == "restorecon"
	if j.lstat == nil || !lenient && !slices.ContainsFunc(j.exclude, isGlob) {
		return nil
	}
	found, err := answer(ctx, "getdents64", paths[0], func() (all []string, err error) {
		for _, pattern := range j.exclude {
			names := []string{pattern}
			_, missing := j.lstat(pattern)
			switch {
			case missing != nil && isGlob(pattern):
				if names, err = matches(paths, pattern); err != nil {
					return nil, mistake{what: fmt.Sprintf("--exclude %s: %v", words.Brief(pattern), err)}
				}
				if len(names) == 0 && !lenient {
					return nil, mistake{what: "--exclude " + words.Brief(pattern) + ": nothing in PATH matches it"}
				}
			case lenient && isMissing(missing):
				j.Note("", "exclude "+words.Brief(pattern)+": no such file or directory; it is ignored")
				continue
			}
			all = append(all, names...)
		}
		return all, nil
	})
	if err == nil {
		j.exclude = found
	}
	return err
}

// matches returns what pattern matches, which is relative to each of dirs, or absolute.
func matches(dirs []string, pattern string) (all []string, err error) {
	for _, dir := range dirs {
		dir = strings.TrimSuffix(dir, "/") + "/"
		below := strings.TrimPrefix(pattern, dir)
		root, err := os.OpenRoot(dir)
		if err != nil || path.IsAbs(below) { // the run says what is wrong
			continue
		}
		names, err := fs.Glob(root.FS(), path.Clean(below))
		_ = root.Close() // only read
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			all = append(all, dir+name)
		}
	}
	return all, nil
}
