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
func (j *job) matchExclude(ctx context.Context, paths []string) error {
	if j.lstat == nil || !slices.ContainsFunc(j.exclude, isGlob) {
		return nil
	}
	found, err := answer(ctx, "getdents64", paths[0], func() (all []string, err error) {
		for _, pattern := range j.exclude {
			if _, err := j.lstat(pattern); err == nil || !isGlob(pattern) {
				all = append(all, pattern)
				continue
			}
			names, err := matches(paths, pattern)
			switch {
			case err != nil:
				return nil, mistake{what: fmt.Sprintf("--exclude %s: %v", words.Brief(pattern), err)}
			case len(names) == 0 && j.command != "restorecon": // it is a script's list there
				return nil, mistake{what: "--exclude " + words.Brief(pattern) + ": nothing in PATH matches it"}
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
