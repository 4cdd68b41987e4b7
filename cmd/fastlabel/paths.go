// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// root is one PATH. cover is the index of another that takes it in, or -1.
type root struct {
	path  string
	cover int
}

// place is where a path leads: links on the way resolved, the last name not.
type place struct {
	path  string // "" if it could not be resolved
	info  fs.FileInfo
	id    identity
	hasID bool
}

// coversOf finds the paths that another takes in: the same file, or one that lies
// beneath a listed directory and is certain to be met there. In doubt a path
// is walked by itself; the second walk finds its labels right and writes none.
// It is not certain behind a mount (-x, or a mount that bears no labels: the
// walk skips that, who lists it should hear of it), beneath an exclusion, or
// if the walk above may trust a label and stop.
func coversOf(paths []string, s *settings) []root {
	roots := make([]root, len(paths))
	places := make([]place, len(paths))
	mounts, err := mountPoints()
	excluded := excludedIDs(s.exclude)
	byPath, byID := map[string]int{}, map[identity]int{}
	for i, p := range paths {
		roots[i] = root{p, -1}
		at := locate(p)
		places[i] = at
		if at.path == "" {
			continue
		}
		if first, ok := byPath[at.path]; ok {
			roots[i].cover = first
			continue
		}
		byPath[at.path] = i
		if !at.hasID {
			continue
		}
		// Another name of the same file. Two places of one directory can have
		// different things mounted beneath them.
		first, ok := byID[at.id]
		if ok && (!at.info.IsDir() || err == nil && !mountBeneath(mounts, at.path) && !mountBeneath(mounts, places[first].path)) {
			roots[i].cover = first
		} else if !ok {
			byID[at.id] = i
		}
	}
	if s.trust != "none" && s.trust != "" || err != nil {
		return roots
	}
	for i, at := range places {
		if roots[i].cover >= 0 || at.path == "" {
			continue
		}
		for dir := at.path; ; {
			if _, mounted := mounts[dir]; mounted || isExcluded(dir, excluded) {
				break
			}
			parent := filepath.Dir(dir)
			if parent == dir {
				break
			}
			dir = parent
			if above, ok := byPath[dir]; ok && places[above].info.IsDir() && sameDevice(at, places[above]) {
				roots[i].cover = above
				break
			}
		}
	}
	return roots
}

// cover returns which root, walked by itself, takes in that one, or -1.
func cover(roots []root, i int) int {
	by := roots[i].cover
	for by >= 0 && roots[by].cover >= 0 { // a twin of one that lies in a third
		by = roots[by].cover
	}
	return by
}

// locate resolves path as the walk will reach it: a link at its end is itself,
// unless a slash follows.
func locate(path string) place {
	abs := path
	if !filepath.IsAbs(path) {
		wd, err := os.Getwd()
		if err != nil {
			return place{}
		}
		abs = wd + string(filepath.Separator) + path // Join would clean a/../b by name
	}
	dir, base := filepath.Split(abs)
	if base == "" || base == "." || base == ".." {
		dir, base = abs, ""
	}
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return place{}
	}
	at := place{path: filepath.Join(dir, base)}
	if at.info, err = os.Lstat(at.path); err != nil {
		return place{}
	}
	at.id, at.hasID = identify(at.info)
	return at
}

func sameDevice(a, b place) bool { return a.hasID && b.hasID && a.id.dev == b.id.dev }

func mountBeneath(mounts map[string]string, dir string) bool {
	prefix := strings.TrimSuffix(dir, "/") + "/"
	for m := range mounts {
		if strings.HasPrefix(m, prefix) {
			return true
		}
	}
	return false
}

// excludedIDs knows each exclusion by itself and by what it links to.
func excludedIDs(paths []string) map[identity]bool {
	ids := map[identity]bool{}
	for _, p := range paths {
		for _, stat := range []func(string) (fs.FileInfo, error){os.Stat, os.Lstat} {
			if info, err := stat(p); err == nil {
				if id, ok := identify(info); ok {
					ids[id] = true
				}
			}
		}
	}
	return ids
}

func isExcluded(path string, ids map[identity]bool) bool {
	if len(ids) == 0 {
		return false
	}
	info, err := os.Lstat(path)
	if err != nil {
		return true
	}
	id, ok := identify(info)
	return !ok || ids[id]
}
