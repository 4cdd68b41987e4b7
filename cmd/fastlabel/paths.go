// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
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
//
// at counts the looks, each of which may hang.
func coversOf(ctx context.Context, paths []string, s *settings, at *atomic.Int64) []root {
	roots := bare(paths)
	places := make([]place, len(paths))
	mounts, err := mountPoints()
	above := map[string]bool{} // what something is mounted beneath
	for m := range mounts {
		for dir := filepath.Dir(m); !above[dir]; dir = filepath.Dir(dir) {
			above[dir] = true
		}
	}
	excluded := exclusions{ids: excludedIDs(s.exclude), known: map[string]bool{}}
	wd, resolved := workingDirectory(), map[string]string{}
	byPath, byID := map[string]int{}, map[identity]int{}
	for i, p := range paths {
		if at.Add(1); ctx.Err() != nil {
			return roots
		}
		here := locate(wd, p, resolved)
		places[i] = here
		if here.path == "" {
			continue
		}
		if first, ok := byPath[here.path]; ok {
			roots[i].cover = first
			continue
		}
		byPath[here.path] = i
		if !here.hasID {
			continue
		}
		// Another name of the same file. Two places of one directory can have
		// different things mounted beneath them.
		first, ok := byID[here.id]
		if ok && (!here.info.IsDir() || err == nil && !above[here.path] && !above[places[first].path]) {
			roots[i].cover = first
		} else if !ok {
			byID[here.id] = i
		}
	}
	if s.trust != "none" && s.trust != "" || err != nil {
		return roots
	}
	for i, here := range places {
		if ctx.Err() != nil {
			return roots
		}
		if roots[i].cover >= 0 || here.path == "" {
			continue
		}
		for dir := here.path; ; {
			at.Add(1)
			if _, mounted := mounts[dir]; mounted || excluded.has(dir) {
				break
			}
			parent := filepath.Dir(dir)
			if parent == dir {
				break
			}
			dir = parent
			if above, ok := byPath[dir]; ok && places[above].info.IsDir() && sameDevice(here, places[above]) {
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
// unless a slash follows. resolved keeps what directories are.
func locate(wd, path string, resolved map[string]string) place {
	if !filepath.IsAbs(path) {
		if wd == "" {
			return place{}
		}
		path = wd + string(filepath.Separator) + path // Join would clean a/../b by name
	}
	dir, base := filepath.Split(path)
	if base == "" || base == "." || base == ".." {
		dir, base = path, ""
	}
	real, known := resolved[dir]
	if !known {
		var err error
		if real, err = filepath.EvalSymlinks(dir); err != nil {
			return place{}
		}
		resolved[dir] = real
	}
	at := place{path: filepath.Join(real, base)}
	var err error
	if at.info, err = os.Lstat(at.path); err != nil {
		return place{}
	}
	at.id, at.hasID = identify(at.info)
	return at
}

// workingDirectory is "" where there is none any more, or its path is longer than the
// kernel tells. os.Getwd would look at all that lies beside it then.
func workingDirectory() string {
	wd, err := syscall.Getwd()
	if err != nil {
		return ""
	}
	return wd
}

func sameDevice(a, b place) bool { return a.hasID && b.hasID && a.id.dev == b.id.dev }

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

// exclusions remembers what was looked up.
type exclusions struct {
	ids   map[identity]bool
	known map[string]bool
}

func (e exclusions) has(path string) bool {
	if len(e.ids) == 0 {
		return false
	}
	excluded, known := e.known[path]
	if !known {
		info, err := os.Lstat(path)
		id, ok := identity{}, false
		if err == nil {
			id, ok = identify(info)
		}
		excluded = !ok || e.ids[id]
		e.known[path] = excluded
	}
	return excluded
}
