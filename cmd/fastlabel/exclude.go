// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/words"
)

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
